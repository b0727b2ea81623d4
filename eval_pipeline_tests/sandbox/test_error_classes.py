"""The class of what a snippet raises, with the exceptions that pandas, numpy and DuckDB really raise there."""

import pandas as pd
import pytest

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox import Outcome, SnippetFailed
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.sandbox.test_python_sandbox import run

ROWS = golden("sandbox_exceptions.yaml")
CODES = [row["code"] for row in ROWS]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    found = run(*CODES, tables={"df": pd.DataFrame({"n": [1, 2], "s": ["a", "b"]})})
    return dict(zip(CODES, found, strict=True))


@pytest.mark.parametrize("row", ROWS, ids=CODES)
def test_an_exception_has_its_class(row: dict[str, str], outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[row["code"]]
    assert isinstance(outcome, SnippetFailed), outcome
    assert (outcome.exception, outcome.error_class) == (row.get("type", outcome.exception), row["error_class"])


def test_every_class_is_among_them() -> None:
    assert {row["error_class"] for row in ROWS} == {str(name) for name in ErrorClass}
