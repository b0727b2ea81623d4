"""Importing the package is cheap, and scipy never comes in."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import eval_pipeline.statistics as stats
heavy = {"scipy", "pandas"} & {name.partition(".")[0] for name in sys.modules}
assert not heavy, heavy
ours = ("eval_pipeline.statistics", "eval_pipeline.core")
others = [m for m in sys.modules if m.startswith("eval_pipeline.") and not m.startswith(ours)]
assert not others, others
x, c = [1, 1, 2, 2, 3, 3] * 20, list(range(60)) * 2
y = [1, 0, 1, 0, 1, 0] * 20
assert stats.complexity_ceiling(x, y, c).p_value is not None
assert "scipy" not in sys.modules
"""


def test_imports_are_lazy() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


def test_all_is_exported_in_order() -> None:
    import eval_pipeline.statistics as stats

    assert stats.__all__ == sorted(stats.__all__, key=lambda name: (not name.isupper(), name)), "constants first"
    assert all(hasattr(stats, name) for name in stats.__all__)
