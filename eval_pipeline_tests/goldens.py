"""Reads the golden files: what is expected, as data."""

from pathlib import Path
from typing import Any

import yaml

GOLDEN = Path(__file__).parent / "golden"
# libyaml where it is there: every test process reads all of them, and the loader in Python takes seconds for that.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def golden(name: str) -> Any:
    """What the file of `golden/` holds."""
    return yaml.load((GOLDEN / name).read_text(encoding="utf-8"), Loader=_Loader)
