"""Public data that lies outside the repository: one setting says where, and tests that need it are skipped without."""

import os
from pathlib import Path

import pytest

SETTING = "EVAL_PUBLIC_DATA"
PUBLIC = Path(os.environ.get(SETTING) or Path(__file__).resolve().parents[2] / "shared" / "data")
FINQA, PANDAS, SDMX, SQL = (PUBLIC / track for track in ("finqa", "pandas", "sdmx", "sql"))


def why_not(path: Path) -> str:
    """The reason of a skip."""
    return f"public data is not here: {path} ({SETTING} names the folder that holds it)"


def needs(path: Path) -> pytest.MarkDecorator:
    """Skips tests where a file or folder is absent."""
    return pytest.mark.skipif(not path.exists(), reason=why_not(path))


def given(path: Path) -> Path:
    """The file or folder; without it the test that asks is skipped."""
    if not path.exists():
        pytest.skip(why_not(path))
    return path
