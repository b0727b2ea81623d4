"""A suite of forty turns."""

import pytest

from eval_pipeline_tests.analysis.comparisons.histories import CASES
from eval_pipeline_tests.support import Lab


@pytest.fixture
def forty(small: Lab) -> Lab:
    folder = small.suite(cases=CASES)
    for name in ("alpha", "beta"):
        (folder / "cases" / f"{name}.yaml").unlink()
    small.versions(*({"name": name, "provider": "puppet"} for name in ("puppet", "other", "third")))
    return small
