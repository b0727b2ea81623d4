"""Requirements of questions in code: cases worked by hand, and what holds of all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.tracks.pandas_code.metrics.coverage import WEIGHTS, requirement_coverage
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("pandas_coverage.yaml")
TABLES = GOLDEN["tables"]
Golden = dict[str, Any]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_filters_groups_orders_and_joins_covered(case: Golden) -> None:
    found = requirement_coverage(case["q"], case["code"], TABLES)
    details: Any = found.details
    assert [details[part] for part in WEIGHTS] == pytest.approx(case["parts"], abs=1e-4)
    assert details["missing_requirements"] == case["missing"]
    weighed = sum(weight * part for weight, part in zip((0.3, 0.3, 0.2, 0.2), case["parts"], strict=True))
    assert found.value == pytest.approx(weighed, abs=1e-4)


def test_with_a_single_table_no_join_is_asked_for() -> None:
    question, code = "Combine region and status into one text", "result = orders.region + orders.status"
    details: Any = requirement_coverage(question, code, {"orders": TABLES["orders"]}).details
    assert details["join_conditions_coverage"] == 1
    details = requirement_coverage(question, code, {}).details
    assert details["join_conditions_coverage"] == 0


CONDITIONS = {
    "quantity is greater than 5": "orders['quantity'] > 5",
    "unit price is at least 10": "orders['unit_price'] >= 10",
    "region is 'North'": "orders['region'] == 'North'",
    "status is not equal to 'open'": "orders['status'] != 'open'",
}


@given(
    st.lists(st.sampled_from(sorted(CONDITIONS)), min_size=1, max_size=4, unique=True),
    st.sampled_from(["and", "or"]),
    st.integers(0, 4),
)
def test_a_filter_covers_the_share_of_the_conditions_that_it_has(stated: list[str], word: str, kept: int) -> None:
    have = stated[: min(kept, len(stated))]
    chosen = "".join(f"({CONDITIONS[text]}) {'&' if word == 'and' else '|'} " for text in have)[:-3]
    code = f"result = orders[{chosen}]" if have else "result = orders"
    details: Any = requirement_coverage(f"Orders where {f' {word} '.join(stated)}", code, TABLES).details
    assert details["filter_conditions_coverage"] == pytest.approx(len(have) / len(stated))


@given(st.lists(st.sampled_from(["region", "status", "quantity"]), min_size=1, unique=True), st.data())
def test_a_grouping_covers_the_share_of_the_columns_that_it_has(asked: list[str], data: st.DataObject) -> None:
    used = data.draw(st.lists(st.sampled_from(asked), unique=True, min_size=1))
    listed = asked[0] if len(asked) == 1 else f"{', '.join(asked[:-1])} and {asked[-1]}"
    code = f"result = orders.groupby({used!r}).size()"
    details: Any = requirement_coverage(f"Number of orders by {listed}", code, TABLES).details
    assert details["groupby_columns_coverage"] == pytest.approx(len(used) / len(asked))


@given(st.text(), st.text())
def test_any_text_can_be_read(question: str, code: str) -> None:
    found = requirement_coverage(question, code, TABLES)
    details: Any = found.details
    assert found.value == pytest.approx(sum(weight * details[part] for part, weight in WEIGHTS.items()))
