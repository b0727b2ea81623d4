"""Labels as a matrix: rows of the table become expected × given, with what was not readable in a column of its own."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.reports.confusion import MOST_LABELS, NO_LABEL, confusion_of


def row(expected: str, said: str | None, turns: int) -> dict[str, Any]:
    return {"expected_label": expected, "answer_label": said, "turns": turns}


def test_rows_become_a_matrix() -> None:
    found = confusion_of([row("b", "b", 2), row("a", "b", 1), row("a", "a", 3), row("a", None, 1), row("b", "c", 4)])
    assert found.given == ("a", "b", "c", NO_LABEL)
    assert found.rows == (("a", (3, 1, 0, 1), 5), ("b", (0, 2, 4, 0), 6))


def test_without_labels_or_with_too_many_there_is_none() -> None:
    assert confusion_of([]) is None
    assert confusion_of([row(f"{i}", f"{i}", 1) for i in range(MOST_LABELS)]) is not None
    assert confusion_of([row(f"{i}", f"{i}", 1) for i in range(MOST_LABELS + 1)]) is None


LABELS = st.sampled_from("abcd")


@given(st.dictionaries(st.tuples(LABELS, LABELS | st.none()), st.integers(1, 9), min_size=1))
def test_no_turn_is_lost(pairs: dict[tuple[str, str | None], int]) -> None:
    found = confusion_of([row(*labels, turns) for labels, turns in pairs.items()])
    assert sum(total for _, _, total in found.rows) == sum(pairs.values())
    for label, counts, _ in found.rows:
        for said, turns in zip(found.given, counts, strict=True):
            assert pairs.get((label, None if said == NO_LABEL else said), 0) == turns
