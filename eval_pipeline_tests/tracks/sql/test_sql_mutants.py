"""Mutants of accepted queries: which the suite's database tells, and the rows that tell the others."""

import yaml

from eval_pipeline.tracks.sql.mutants import turn_mutants_score
from eval_pipeline_tests.support import Lab, surroundings
from eval_pipeline_tests.tracks.sql.helpers import OSLO, TOTALS, WIPE, read, shared, shop_lab


def test_what_the_database_does_not_tell_is_named_with_rows_that_would(lab: Lab) -> None:
    """No order of the shop costs 15: the bound may be in or out."""
    large = {
        "id": "large",
        "question": "Which orders are over 15?",
        "expected_sql": "SELECT id FROM orders WHERE total > 15 AND placed_on > '2024-01-10'",
    }
    shop_lab(lab, OSLO, large, WIPE)
    said = lab.cli("validate", "--suite", "shop", "--mutants")
    assert said.code == 0, said
    bound = "  the result is the same as if this were changed: the other strictness of total > 15"
    (line,) = [line for line in said.out.splitlines() if line.startswith(bound)]
    assert "; told apart by orders: " in line
    assert "15" in line.partition("orders: ")[2]
    assert "without city = 'Oslo'" not in said.out
    proposed = lab.home.root / "proposed"
    assert lab.cli("harden", "--suite", "shop", "--out", str(proposed)).code == 0
    found = yaml.safe_load((proposed / "shop.yaml").read_text())
    assert any(one["as_if"].endswith("the other strictness of total > 15") for one in found)
    assert all(one["expected"] != one["mutant_gives"] for one in found)


def test_refusals_and_queries_whose_result_changes_have_no_score(lab: Lab) -> None:
    with surroundings(lab):
        found = shared(lab.home.data / "suites" / "shop")
        assert turn_mutants_score(read(WIPE, found).turns[0]) is None
        volatile = {**TOTALS, "id": "v", "expected_sql": "SELECT id FROM customers ORDER BY random() LIMIT 1"}
        assert turn_mutants_score(read(volatile, found).turns[0]) is None
        ordered = {**TOTALS, "id": "o", "expected_sql": "SELECT name FROM customers ORDER BY name"}
        score = turn_mutants_score(read(ordered, found).turns[0])
        assert score is not None
        # Names differ, so that DISTINCT changes nothing here; the other direction does.
        assert [one.words for one in score.survivors] == ["this were changed: with DISTINCT"]
        assert score.mutants == 2
