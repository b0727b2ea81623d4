"""In what two queries differ, by their syntax trees."""

import pytest

from eval_pipeline.tracks.sql.structure import differences

GOLD = "SELECT COUNT(*) FROM t AS x WHERE x.a > 1 AND s NOT LIKE 'b%' AND d IS NOT NULL"


@pytest.mark.parametrize(
    ("generated", "expected"),
    [
        ("SELECT COUNT(*) FROM t WHERE d IS NOT NULL AND NOT s LIKE 'b%' AND a > 1", set()),
        ("SELECT COUNT(*) FROM t WHERE NOT (s LIKE 'b%' OR d IS NULL) AND a > 1", set()),
        ("SELECT COUNT(*) FROM t WHERE a > 1 AND s LIKE 'b%' AND d IS NOT NULL", {"filters"}),
        ("SELECT COUNT(*) FROM t WHERE a > 1 AND s NOT LIKE 'b%' AND d IS NULL", {"filters"}),
        ("SELECT COUNT(*) FROM t WHERE a > 1 AND s NOT LIKE 'b%'", {"filters"}),
        ("SELECT COUNT(DISTINCT a) FROM t WHERE a > 1 AND s NOT LIKE 'b%' AND d IS NOT NULL", {"aggregates"}),
        ("SELECT COUNT(*) FROM u WHERE a >= 1 AND s NOT LIKE 'b%' AND d IS NOT NULL", {"tables", "filters"}),
        ("SELECT COUNT(* FROM", set()),
    ],
)
def test_queries_differ_in_tables_filters_and_aggregates(generated: str, expected: set[str]) -> None:
    assert differences(generated, GOLD, "duckdb") == expected
