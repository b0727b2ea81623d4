"""Polars as a second dialect: answers get polars frames, gold is pandas code on the same tables."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.tracks.base import CaseError
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasOptions, PandasShared, read_tables
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code
from eval_pipeline_plugins.tracks.pandas_code.running.evidence import MATCH, judged
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.tracks.pandas_code.helpers import (
    LARGEST,
    TALK,
    TOTALS,
    answer,
    attempt,
    needs_sandbox,
    read,
    scores,
)

pytestmark = pytest.mark.skipif(find_spec("polars") is None, reason="polars is not installed")


@pytest.fixture
def polars(stall: PandasShared) -> PandasShared:
    return replace(stall, options=PandasOptions(dialect="polars"))


RIGHT = """\
totals = df.group_by("fruit").agg(pl.col("amount").sum())
result = totals.sort("amount", descending=True)"""


@needs_sandbox
def test_polars_answers_are_compared_with_pandas_gold(polars: PandasShared) -> None:
    case = read(TOTALS, polars)
    assert TRACK.check_gold(case) == []
    right = scores(case, answer(RIGHT))
    assert (right["result_match"], right["robust_correct"], right["understanding_score"]) == (True, True, 1.0)
    assert (right["performance_score"], right["coverage_score_from_words"]) == (None, None)
    assert right["quality_score"] == 1.0
    lazy = RIGHT.replace("df.", "df.lazy().").replace("descending=True)", 'descending=True).collect()["amount"]')
    assert scores(case, answer(lazy))["result_match"] is False  # the fruits are missing


@needs_sandbox
def test_a_wrong_answer_is_explained_by_the_requirements_of_the_gold(polars: PandasShared) -> None:
    gold = "result = df.groupby('fruit')['amount'].sum().reset_index()"
    case = read({"id": "s", "tables": "sold", "turns": [{"question": "Amount per fruit?", "code": gold}]}, polars)
    mean = scores(case, answer("result = df.group_by('fruit').agg(pl.col('amount').mean())"))
    assert (mean["result_match"], mean["robust_correct"], mean["failure_mode"]) == (False, False, "wrong_aggregate")


@needs_sandbox
@pytest.mark.parametrize(("raw", "turn"), [(TOTALS, 0), (LARGEST, 0), (TALK, 0), (TALK, 1)])
def test_the_reference_code_is_a_right_answer(polars: PandasShared, raw: dict[str, Any], turn: int) -> None:
    case = read(raw, polars)
    found = attempt(case, TRACK.oracle(case.turns[turn]), turn)
    outcome: Any = found.outcome
    assert found.artefact is not None
    assert judged(case.turns[turn].gold, found.artefact, outcome.value)[0] == MATCH


@needs_sandbox
def test_what_a_polars_answer_is_told(polars: PandasShared) -> None:
    case = read(TOTALS, polars)
    outcome: Any = attempt(case, answer("x = 1\nresult = df.groupby('fruit')")).outcome
    assert outcome.message.startswith("AttributeError")
    assert outcome.message.endswith("(line 2)")
    prompt = TRACK.prompt(case, case.turns[0], [], "code-1").messages[0].text
    assert "polars" in prompt
    assert "pandas" not in prompt


@needs_sandbox
def test_dates_lists_and_missing_values_come_back_as_pandas_has_them(polars: PandasShared) -> None:
    gold = "s = sold.assign(day=pd.to_datetime(sold.sold_on))\n"
    cases = {
        "result = s.groupby('fruit')['day'].max()": "s.group_by('fruit').agg(pl.col('day').max())",
        "result = s.groupby('city')['fruit'].agg(list)": "s.drop_nulls('city').group_by('city').agg('fruit')",
        "result = s[['city', 'amount']]": "s.select('city', 'amount').lazy()",
        "result = s['amount'].mean()": "s['amount'].mean()",
        "result = s['day'].max()": "s['day'].max()",
        "result = s['city'].dropna().unique()": "s['city'].drop_nulls().unique()",
    }  # fmt: skip
    start = "s = sold.with_columns(day=pl.col('sold_on').str.to_datetime())\nresult = "
    for right, code in cases.items():
        case = read({"id": "c", "tables": "sold", "turns": [{"question": "?", "code": gold + right}]}, polars)
        (turn,) = case.turns
        outcome: Any = attempt(case, answer(start + code)).outcome
        assert judged(turn.gold, Code(start + code), outcome.value)[0] == MATCH, code


def test_tests_are_for_pandas_code(polars: PandasShared) -> None:
    with pytest.raises(CaseError, match="expected no 'tests' in a suite of the dialect polars"):
        read({"id": "t", "turns": [{"question": "?", "code": "x = 1", "tests": "assert x"}]}, polars)


def test_dialects_are_two(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="dialect"):
        read_tables(tmp_path, {"dialect": "dplyr"})
