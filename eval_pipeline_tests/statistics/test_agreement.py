"""Cohen's kappa against figures worked out by hand, and its interval against simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.statistics.raters.agreement import cohens_kappa, label_scores, self_agreement


def ratings(table: list[list[int]]) -> tuple[list[int], list[int]]:
    """Two raters' words from a confusion matrix."""
    pairs = [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    return [i for i, _ in pairs], [j for _, j in pairs]


@pytest.mark.parametrize(
    ("table", "observed", "kappa"),
    [
        # 35 of 50 agree; chance gives 25/50·30/50 + 25/50·20/50 = 0.5
        ([[20, 5], [10, 15]], 0.7, 0.4),
        ([[10, 0], [0, 10]], 1.0, 1.0),
        ([[0, 10], [10, 0]], 0.0, -1.0),
        # three words: 15 of 24 agree; chance (10·8 + 8·9 + 6·7)/24² = 194/576
        ([[6, 3, 1], [1, 5, 2], [1, 1, 4]], 15 / 24, (15 / 24 - 194 / 576) / (1 - 194 / 576)),
    ],
)
def test_kappa_is_agreement_beyond_chance(table: list[list[int]], observed: float, kappa: float) -> None:
    first, second = ratings(table)
    found = cohens_kappa(first, second, range(len(first)))
    assert found.observed == pytest.approx(observed)
    assert found.kappa == pytest.approx(kappa)
    assert found.n == found.clusters == len(first)


def test_what_gives_no_kappa_or_no_interval_has_a_reason() -> None:
    found = cohens_kappa([], [], [])
    assert (found.n, found.kappa, found.observed, found.reason) == (0, None, None, "nothing was rated by both")
    found = cohens_kappa([1, 1, 1], [1, 1, 1], [0, 1, 2])
    assert (found.observed, found.kappa, found.reason) == (1.0, None, "both gave everything the same rating")
    found = cohens_kappa([0, 1, 1], [0, 1, 0], [7, 7, 7])
    assert found.kappa is not None
    assert (found.clusters, found.se, found.low, found.reason) == (1, None, None, "one conversation only")
    found = self_agreement([[1, 1, 1]] * 4, range(4))
    assert (found.unanimous, found.agreement, found.kappa) == (4, 1.0, None)
    assert found.reason == "both gave everything the same rating"
    assert self_agreement(np.zeros((0, 3)), []).reason == "nothing was rated by both"


def test_the_interval_covers_the_truth() -> None:
    """Two raters, clusters of 3 that share their difficulty; they agree in 0.8, and by chance in a half."""
    rng = np.random.default_rng(1)
    truth, draws, hits = 2 * 0.8 - 1, 200, 0
    for _ in range(draws):
        first, second, clusters = draw(rng, 60)
        found = cohens_kappa(first, second, clusters)
        hits += found.low <= truth <= found.high
    assert 0.90 <= hits / draws <= 0.99, hits / draws


def draw(rng: np.random.Generator, clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ratings of so many clusters of three items."""
    groups = np.repeat(np.arange(clusters), 3)
    agrees = rng.uniform(0.6, 1.0, clusters)[groups]
    first = rng.integers(0, 2, len(groups))
    second = np.where(rng.uniform(size=len(groups)) < agrees, first, 1 - first)
    return first, second, groups


FLEISS = [
    (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
]  # fmt: skip
"""Counts of five categories for ten items of 14 ratings: the worked example of Wikipedia's article on Fleiss' kappa."""


def test_self_agreement_is_that_of_fleiss() -> None:
    ratings = [[category for category, count in enumerate(counts) for _ in range(count)] for counts in FLEISS]
    found = self_agreement(ratings, range(10))
    assert (found.n, found.unanimous) == (10, 1)
    assert found.agreement == pytest.approx(0.378, abs=5e-4)
    assert found.kappa == pytest.approx(0.210, abs=5e-4)
    assert found.low < 0.378 < found.high


@pytest.mark.parametrize("clusters", [[0, 0], [0]])
def test_one_conversation_asked_again_has_no_interval(clusters: list[int]) -> None:
    found = self_agreement([[0, 1], [1, 1]][: len(clusters)], clusters)
    assert (found.low, found.high) == (None, None)
    assert found.reason is not None


def test_scores_worked_by_hand_and_what_has_no_interval_or_score() -> None:
    # Expected, given, right: 3, 2, 2 (F1 4/5); 1, 2, 1 (2/3); 1, 0, 0 (0).
    each, macro = label_scores([0, 0, 0, 1, 2], [0, 0, 1, 1, -1], [0, 1, 2, 3, 4], 3)
    assert [(score.n, score.given) for score in each] == [(3, 2), (1, 2), (1, 0)]
    assert [score.f1 for score in each] == pytest.approx([4 / 5, 2 / 3, 0])
    assert (each[0].precision, each[0].recall) == pytest.approx((1, 2 / 3))
    assert (each[2].precision, each[2].recall) == (None, 0)
    assert macro.f1 == pytest.approx((4 / 5 + 2 / 3) / 3)
    assert (macro.n, macro.given) == (5, 4)
    each, _ = label_scores([0, 0, 1], [0, 1, 0], [7, 8, 7], 3)
    assert each[1].low is not None
    assert (each[2].f1, each[2].reason) == (None, "no turn expects the label, and none gives it")
    alone, macro = label_scores([0, 1], [0, 1], [5, 5], 2)
    assert (macro.f1, macro.low, macro.reason) == (1.0, None, "one conversation only")
    assert alone[0].low is None
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
    """200 draws of 60 clusters of 1 to 3 turns that err together; the truth is by a draw of 200,000 turns."""
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
    for _ in range(200):
        macro = label_scores(*drawn(60), 3)[1]
        held += macro.low <= truth <= macro.high
    assert 0.91 <= held / 200 <= 0.99
