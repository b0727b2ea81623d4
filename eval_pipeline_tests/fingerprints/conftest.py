from pathlib import Path

import pytest

from eval_pipeline_tests.fingerprints.packages import Change


@pytest.fixture
def change(tmp_path: Path) -> Change:
    return Change(tmp_path)
