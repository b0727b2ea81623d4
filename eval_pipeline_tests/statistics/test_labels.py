"""F1 of labels: worked by hand, against its definition, and the coverage of its intervals by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.statistics import label_scores


def test_scores_worked_by_hand() -> None:
    """Expected, given, right: 3, 2, 2 (F1 4/5); 1, 2, 1 (2/3); 1, 0, 0 (0)."""
    each, macro = label_scores([0, 0, 0, 1, 2], [0, 0, 1, 1, -1], [0, 1, 2, 3, 4], 3)
    assert [(score.n, score.given) for score in each] == [(3, 2), (1, 2), (1, 0)]
    assert [score.f1 for score in each] == pytest.approx([4 / 5, 2 / 3, 0])
    assert (each[0].precision, each[0].recall) == pytest.approx((1, 2 / 3))
    assert (each[2].precision, each[2].recall) == (None, 0)
    assert macro.f1 == pytest.approx((4 / 5 + 2 / 3) / 3)
    assert (macro.n, macro.given) == (5, 4)


def test_a_label_in_one_cluster_has_no_interval() -> None:
    each, _ = label_scores([0, 0, 1], [0, 1, 0], [7, 8, 7], 3)
    assert each[1].low is not None
    assert (each[2].f1, each[2].reason) == (None, "no turn expects the label, and none gives it")
    alone, macro = label_scores([0, 1], [0, 1], [5, 5], 2)
    assert (macro.f1, macro.low, macro.reason) == (1.0, None, "one conversation only")
    assert alone[0].low is None


def test_no_turn_has_no_score() -> None:
    assert label_scores([], [], [], 2)[1].reason == "no turn has a value"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3), st.integers(0, 9)), min_size=1, max_size=60))
def test_f1_is_the_harmonic_mean_and_lies_in_its_interval(rows: list[tuple[int, int, int]]) -> None:
    expected, said, clusters = zip(*rows, strict=True)
    each, macro = label_scores(expected, said, clusters, 4)
    for score in each:
        if score.precision and score.recall:
            assert score.f1 == pytest.approx(2 / (1 / score.precision + 1 / score.recall))
        if score.low is not None and score.high is not None and score.f1 is not None:
            assert 0 <= score.low <= score.f1 <= score.high <= 1
    known = [score.f1 for score in each if score.n]
    assert macro.f1 == pytest.approx(np.mean(known))


def test_the_interval_of_macro_f1_holds_its_value_as_often_as_it_says() -> None:
    """300 draws of 60 clusters of 1 to 3 turns that err together; the truth is by a draw of 200,000 turns."""
    rng = np.random.default_rng(17)

    def drawn(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sizes = rng.integers(1, 4, count)
        clusters = np.repeat(np.arange(count), sizes)
        skill = np.repeat(rng.beta(4, 1.5, count), sizes)
        expected = rng.choice(3, len(clusters), p=[0.5, 0.3, 0.2])
        wrong = (expected + rng.integers(1, 3, len(clusters))) % 3
        return expected, np.where(rng.random(len(clusters)) < skill, expected, wrong), clusters

    expected, said, _ = drawn(100_000)
    truth = np.mean(
        [2 * np.sum((expected == k) & (said == k)) / (np.sum(expected == k) + np.sum(said == k)) for k in range(3)]
    )
    held = 0
    for _ in range(300):
        macro = label_scores(*drawn(60), 3)[1]
        assert macro.low is not None
        assert macro.high is not None
        held += macro.low <= truth <= macro.high
    assert 0.91 <= held / 300 <= 0.99
