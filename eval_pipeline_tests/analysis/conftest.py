"""A suite of forty turns."""

import pytest

from eval_pipeline_tests.analysis.histories import CASES
from eval_pipeline_tests.support import Lab


@pytest.fixture
def forty(small: Lab) -> Lab:
    small.suite(cases=CASES)
    for file in (small.home.data / "suites" / "small" / "cases").glob("*.yaml"):
        if file.stem in {"alpha", "beta"}:
            file.unlink()
    small.versions(*({"name": name, "provider": "puppet"} for name in ("puppet", "other", "third")))
    return small
