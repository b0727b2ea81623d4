"""How many processors this process may use, where a cgroup limits it."""

import os
from pathlib import Path

import pytest

from eval_pipeline.core.system.processors import processors
from eval_pipeline.sandbox.python_sandbox import PythonSandbox
from eval_pipeline.sandbox.sql import runner


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which this process may run on eight processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "200000 100000\n"}, 2),
        ("0::/a/b\n", {"a/b/cpu.max": "150000 100000\n"}, 2),  # one and a half
        ("0::/a/b\n", {"a/b/cpu.max": "10000 100000\n"}, 1),  # a tenth
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n"}, 8),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "300000 100000\n"}, 3),  # the group around it
        ("0::/a/b\n", {"a/b/cpu.max": "400000 100000\n", "a/cpu.max": "300000 100000\n"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "9900000 100000\n"}, 8),  # more than there are
        ("0::/host/path\n", {"cpu.max": "200000 100000\n"}, 2),  # seen from inside a container
        ("0::/\n", {}, 8),
        (
            "4:cpu,cpuacct:/a\n2:memory:/a\n",
            {"cpu/a/cpu.cfs_quota_us": "300000", "cpu/a/cpu.cfs_period_us": "100000"},
            3,
        ),
        ("4:cpu,cpuacct:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, 8),
        ("4:cpuset:/a\n", {"cpu/a/cpu.cfs_quota_us": "300000", "cpu/a/cpu.cfs_period_us": "100000"}, 8),
        ("0::/a\n", {"a/cpu.max": "nonsense"}, 8),
        (None, {}, 8),
    ],
)
def test_a_cgroup_limits_them(tmp_path: Path, own: str | None, files: dict[str, str], expected: int) -> None:
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    named = tmp_path / "own"
    if own is not None:
        named.write_text(own)
    assert processors(tmp_path / "groups", named) == expected


def test_affinity_limits_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert processors(tmp_path, tmp_path / "own") == 1


def test_children_are_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    found = runner.SqlRunner()
    try:
        assert found._threads._max_workers == processors()
        assert found._processes._places._initial_value == processors()  # type: ignore[attr-defined]
    finally:
        found.close()
    assert PythonSandbox()._slots._value == processors()
