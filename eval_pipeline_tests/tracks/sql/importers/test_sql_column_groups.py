"""defog's notation for accepted queries."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.tracks.sql.importers.column_groups import MOST, accepted_queries
from eval_pipeline_tests.goldens import golden

ROWS = golden("sql_column_groups.yaml")
names = st.from_regex(r"[a-z]\.[a-z]{1,4}", fullmatch=True)
groups = st.lists(names, min_size=1, max_size=4, unique=True)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_what_the_notation_stands_for(row: dict[str, Any]) -> None:
    assert accepted_queries(row["notation"]) == row["queries"]


@given(groups)
def test_every_choice_of_columns_is_accepted_once_and_in_order(columns: list[str]) -> None:
    found = accepted_queries("SELECT {" + ", ".join(columns) + "} FROM t GROUP BY {}")
    chosen = [c for size in range(1, len(columns) + 1) for c in combinations(columns, size)]
    assert found == [f"SELECT {', '.join(c)} FROM t GROUP BY {', '.join(c)}" for c in chosen]


@given(st.lists(groups, min_size=1, max_size=2), st.text("abc ';,{}", max_size=12))
def test_a_literal_is_never_touched(columns: list[list[str]], text: str) -> None:
    literal = "'" + text.replace("'", "''") + "'"
    notation = f"SELECT {', '.join('{' + ','.join(group) + '}' for group in columns)} FROM t WHERE x = {literal}"
    found = accepted_queries(notation)
    assert all(query.endswith(f" FROM t WHERE x = {literal}") for query in found)
    assert not any("{" in query.removesuffix(literal) for query in found)


@pytest.mark.parametrize(
    ("notation", "says"),
    [
        ("SELECT {a, b FROM t", "no partner"),
        ("SELECT a, b} FROM t", "no partner"),
        ("SELECT {a, {b}} FROM t", "no partner"),
        ("SELECT }a{ FROM t", "no partner"),
        ("SELECT {a,,b} FROM t", "a column is missing"),
        ("SELECT a FROM t GROUP BY {}", "there is none"),
        ("SELECT {" + ",".join(f"c{i}" for i in range(11)) + "} FROM t", f"more than {MOST} queries"),
    ],
)
def test_what_is_no_notation_is_refused(notation: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        accepted_queries(notation)
