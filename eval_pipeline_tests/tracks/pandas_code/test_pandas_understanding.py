"""Understanding of questions by code: cases worked by hand, and what holds of all."""

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.tracks.pandas_code.analysis.frame_names import FRAME_NAMES
from eval_pipeline.tracks.pandas_code.analysis.snippet import read_snippet
from eval_pipeline.tracks.pandas_code.analysis.syntax import DEEPEST
from eval_pipeline.tracks.pandas_code.metrics.understanding import WEIGHTS, prompt_understanding
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("pandas_understanding.yaml")
TABLES = GOLDEN["tables"]
Golden = dict[str, Any]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_columns_phrases_and_statistics_taken_up(case: Golden) -> None:
    found = prompt_understanding(case["q"], case["code"], TABLES)
    assert found.details is not None
    details: Any = found.details
    assert [details[part] for part in WEIGHTS] == pytest.approx(case["parts"], abs=1e-4)
    assert found.value == pytest.approx(sum(case["parts"]), abs=1e-4)
    if found.reason is None:
        letters = zip("cps", WEIGHTS, strict=True)
        assert "".join(letter for letter, part in letters if part in details["not_applicable"]) == case.get("na", "")
    if "mentioned" in case:
        assert details["mentioned_columns"] == case["mentioned"]
    if "used" in case:
        assert details["extracted_columns"] == case["used"]


def test_the_statistics_of_the_code_are_told() -> None:
    code = 'result = df.groupby("region").agg({"amount": ["mean", np.max], "quantity": lambda s: s.sum()})'
    details: Any = prompt_understanding("", code, TABLES).details
    assert sorted(details["statistical_operations"]) == ["groupby", "max", "mean", "sum"]


def test_a_question_that_names_nothing_gives_full_marks_to_any_code() -> None:
    found = prompt_understanding("Hello?", "result = 1", TABLES)
    assert found.value == 1.0
    assert found.details is not None
    assert found.details["not_applicable"] == list(WEIGHTS)


def test_the_names_of_frames_are_those_of_pandas() -> None:
    public = {name for name in dir(pd.DataFrame) if not name.startswith("_")}
    assert public | {"str", "dt", "cat", "dtype"} == FRAME_NAMES


@pytest.mark.parametrize(
    "code",
    [
        "result = " + "(" * 5000,
        "result = " + "-" * 5000 + "1",
        "result = df" + ".head()" * DEEPEST,
        "result = 1" + " + 1" * 3000,
        "\0",
        "result = '\ud800'",
        "a = [b, b]\nb = [a, a]\nresult = df[a]",
        "\n".join(f"a{n} = [a{n + 1}, a{n + 1}]" for n in range(200)) + "\nresult = df[a0].groupby(a0).query(a0)",
        "\n".join(f"a{n} = a{n + 1} & a{n + 1}" for n in range(200)) + "\nresult = df[a0]",
        "a = a.sort_values()\nresult = a.head(3)",
        "df['x'] = df['x']\nresult = df[df['x']]",
        "result = df.query('(' * 5000)\nresult = df.query('" + "(" * 5000 + "')",
    ],
    ids=range(12),
)
def test_code_that_is_made_to_break_its_reader_is_read_or_given_up(code: str) -> None:
    found = prompt_understanding("Top 3 regions by amount where amount is above 5", code, TABLES)
    assert found.value is not None
    assert (found.value == 0) == (read_snippet(code) is None)


_pieces = st.sampled_from(
    [
        *"df ['region'] .amount .groupby('region') .head(3) .sort_values('amount') ( ) [ ] = + result & > 5".split(),
        *"in , if for == not .agg({'amount':'sum'}) [df.amount>5] 'text'".split(),
        *("\n", "lambda x: ", ".query('a > 1')", ".merge(df, on='region')"),
    ]
)
_words = st.sampled_from(
    "top three 5 regions by amount average total where between and or greater than at least per group only each "
    "unit price sort descending order_id 'North' , . how many count active > %".split()
)


@given(st.lists(_words, max_size=15).map(" ".join), st.lists(_pieces, max_size=12).map("".join))
def test_every_pair_of_question_and_code_has_a_score_that_is_the_sum_of_its_parts(question: str, code: str) -> None:
    found = prompt_understanding(question, code, TABLES)
    details: Any = found.details
    assert found.value == pytest.approx(sum(details[part] for part in WEIGHTS))
    assert all(0 <= details[part] <= most for part, most in WEIGHTS.items())
    assert set(details["extracted_columns"]) <= {column for columns in TABLES.values() for column in columns}


@given(st.text(), st.text())
def test_any_text_can_be_read(question: str, code: str) -> None:
    assert 0 <= (prompt_understanding(question, code, TABLES).value or 0) <= 1
