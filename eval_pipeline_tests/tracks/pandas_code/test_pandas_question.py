"""What questions ask for: cases worked by hand, and what holds of all."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.tracks.pandas_code.question.certainty import why_unsure
from eval_pipeline.tracks.pandas_code.question.question import read_question
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("pandas_question.yaml")
TABLES = GOLDEN["tables"]
COLUMNS = sorted({column for columns in TABLES.values() for column in columns if len(column) > 3})
WORDS = "one two three four five six seven eight nine ten eleven twelve".split()
Golden = dict[str, Any]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["q"])
def test_what_questions_ask_for(case: Golden) -> None:
    found = read_question(case["q"], TABLES)
    assert list(found.columns) == case.get("columns", [])
    for end in ("top", "bottom"):
        assert [selection.n for selection in found.selections if selection.end == end] == case.get(end, [])
    assert list(found.ends) == case.get("ends", [])
    assert list(found.statistics) == case.get("statistics", [])
    assert (found.conditions, found.ranges) == (case.get("conditions", 0), case.get("ranges", 0))
    assert list(found.groupings) == case.get("groups", [])
    assert found.grouped is (bool(case.get("groups")) or case.get("grouped", False))
    assert (found.ordered, list(found.directions)) == (case.get("ordered", False), case.get("directions", []))
    assert (found.joined, list(found.join_keys)) == (case.get("joined", False), case.get("keys", []))


@pytest.mark.parametrize("case", GOLDEN["certainty"], ids=lambda case: case["q"])
def test_what_can_be_read_in_two_ways_is_not_certain(case: Golden) -> None:
    assert (why_unsure(case["q"]) is not None) is case["unsure"]


@given(st.sampled_from(COLUMNS), st.sampled_from(["lower", "upper", "title"]), st.booleans(), st.sampled_from(" _"))
def test_a_column_is_found_in_whatever_form_it_is_named(column: str, case: str, plural: bool, gap: str) -> None:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|_", gap, column)
    named = getattr(spaced, case)() + ("S" if case == "upper" else "s") * (plural and not column.endswith("s"))
    found = read_question(f"Tell the {named} please", TABLES)
    assert found.columns == (column,) or (column == "city" and plural)


@given(st.integers(1, 12), st.sampled_from(["top {}", "largest {}", "{} highest", "bottom {}", "{} smallest"]))
def test_a_number_of_rows_is_the_same_in_digits_and_in_words(n: int, phrase: str) -> None:
    digits, word = (read_question(f"the {phrase.format(said)} quantities", TABLES) for said in (n, WORDS[n - 1]))
    assert digits == word
    assert [selection.n for selection in digits.selections] == [n]


@given(st.lists(st.sampled_from(["region", "status", "city"]), unique=True, min_size=1), st.sampled_from(["by", "per"]))
def test_every_column_in_a_list_of_groups_is_found(columns: list[str], word: str) -> None:
    listed = columns[0] if len(columns) == 1 else f"{', '.join(columns[:-1])} and {columns[-1]}"
    assert read_question(f"average quantity {word} {listed}", TABLES).groupings == tuple(columns)


@given(st.text())
def test_any_text_asks_for_something_or_nothing(text: str) -> None:
    found = read_question(text, TABLES)
    assert set(found.groupings) <= set(found.columns)
    assert set(found.join_keys) <= set(found.columns)
    assert found.ranges <= found.conditions
