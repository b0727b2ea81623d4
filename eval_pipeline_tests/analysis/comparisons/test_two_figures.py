"""The verdict over two figures and two tests: the golden cases, and what must hold for any turns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.analysis.comparisons.pairs import two_figures
from eval_pipeline.analysis.comparisons.scored import Paired
from eval_pipeline.analysis.comparisons.two_figures import (
    TwoFigures,
    conservative_columns,
    largest_p,
    note_of,
    verdict_of_both,
)
from eval_pipeline.statistics.pairs.paired import holm
from eval_pipeline_tests.goldens import golden

CASES = golden("paired_verdicts.yaml")["cases"]
KINDS = {"=": (1, 1, 1, 1), "w": (0, 0, 1, 1), "b": (1, 0, 1, 1), "f": (0, 1, 1, 1), "-": (1, 0, 1, 0)}
FURTHER = {"+": (0, 1, 0, 1), "0": (0, 0, 0, 1)}
"""The first did not answer, and the second was right; neither was right."""
SWAPPED = str.maketrans("bf-+", "fb+-")
conversations = st.lists(st.text("=wbf-+", min_size=1, max_size=4), min_size=1, max_size=40)


def figures(found: Sequence[str]) -> TwoFigures:
    turns = [(*(KINDS | FURTHER)[turn], place) for place, conversation in enumerate(found) for turn in conversation]
    a, b, answered_a, answered_b, clusters = np.array(turns, dtype=np.float64).T
    codes = clusters.astype(np.int64)
    first, second = {"correct": a, "answered": answered_a}, {"correct": b, "answered": answered_b}
    both = Paired(np.arange(len(turns)), codes, first, second)
    return two_figures(both, both.where((answered_a * answered_b) == 1.0))


def verdict(found: TwoFigures) -> str | None:
    (corrected,) = holm([None if found.reason else found.p_decisive])
    return verdict_of_both(found, corrected) if corrected else None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case: dict[str, Any]) -> None:
    found = figures([turns for turns, count in case["conversations"] for _ in range(count)])
    for one, expected in ((found.answered, case["answered"]), (found.conservative, case["conservative"])):
        told = [one.n, one.difference, one.p_value, one.p_exact]
        assert told == [None if value is None else pytest.approx(value, rel=1e-9, abs=1e-12) for value in expected]
    assert (verdict(found), found.reason) == (case["verdict"], case.get("reason"))
    (corrected,) = holm([None if found.reason else found.p_decisive])
    assert note_of(found, corrected, "A", "B") == case["note"]
    (alone,) = holm([largest_p(found.conservative)])
    told_alone = conservative_columns(found, alone)["conservative_verdict"]
    assert told_alone == case.get("conservative_verdict", "not_significant")


@given(conversations)
def test_a_verdict_needs_every_test_of_both_figures_and_counts_what_both_answered(found: list[str]) -> None:
    both = figures(found)
    word = verdict(both)
    if word in {"a_better", "b_better"}:
        for one in (both.answered, both.conservative):
            assert one.p_value is not None and one.p_exact is not None and one.difference is not None
            assert max(one.p_value, one.p_exact) < 0.05
            low, high = one.interval()
            assert high < 0 if word == "a_better" else low > 0
    # The two may change places.
    there = figures([turns.translate(SWAPPED) for turns in found])
    assert (both.unanswered_a, both.unanswered_b) == (there.unanswered_b, there.unanswered_a)
    assert verdict(there) == {"a_better": "b_better", "b_better": "a_better"}.get(word, word)
    text = "".join(found)
    assert (both.answered.broken, both.answered.fixed) == (text.count("b"), text.count("f"))
    assert (both.conservative.broken, both.conservative.fixed) == (
        text.count("b") + text.count("-"),
        text.count("f") + text.count("+"),
    )


@given(st.lists(st.text("=wbf", min_size=1, max_size=4), min_size=1, max_size=40))
def test_where_everything_was_answered_there_is_one_figure(found: list[str]) -> None:
    both = figures(found)
    assert both.answered is both.conservative
    assert (both.unanswered_a, both.unanswered_b) == (0, 0)
    if both.p_decisive is not None:
        (corrected,) = holm([both.p_decisive])
        assert "answer" not in (note_of(both, corrected, "A", "B") or "")
