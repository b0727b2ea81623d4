"""Performance and overall by golden cases, the failure modes, and the metrics of whole turns."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import MetricResult
from eval_pipeline.sandbox import Measurement
from eval_pipeline.tracks.pandas_code import performance
from eval_pipeline.tracks.pandas_code.cases.source import PandasShared
from eval_pipeline.tracks.pandas_code.failures.modes import FAILURE_MODES
from eval_pipeline.tracks.pandas_code.metrics.failure_mode import failure_mode
from eval_pipeline.tracks.pandas_code.metrics.overall import WEIGHTS, overall_score, overall_score_from_words
from eval_pipeline.tracks.pandas_code.metrics.performance import part, performance_score
from eval_pipeline.tracks.pandas_code.performance import Measured, measure, without_telling
from eval_pipeline.tracks.pandas_code.results.structure import differences
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.pandas_code.helpers import LARGEST, TALK, TOTALS, answer, needs_sandbox, read, scores

GOLDEN = golden("pandas_scores.yaml")
COSTS = ("generated_ms", "reference_ms", "generated_mib", "reference_mib")


@pytest.mark.parametrize("case", GOLDEN["performance"], ids=lambda case: case["source"])
def test_performance_by_golden_cases(case: dict[str, Any]) -> None:
    cost = dict(zip(COSTS, case["cost"], strict=True))
    found = performance_score(ran=True, has_reference=True, closed_answer=False, cost=cost)
    assert found.value == pytest.approx(case["score"])


@pytest.mark.parametrize("case", GOLDEN["overall"], ids=lambda case: case["source"])
def test_overall_by_golden_cases(case: dict[str, Any]) -> None:
    """Of a right answer both scores are the weighted mean; of a wrong one only that from words."""
    assert overall_score_from_words(*case["scores"], has_error=case["has_error"]).value == pytest.approx(case["score"])
    right = overall_score(*case["scores"], has_error=case["has_error"], result_match=True, robust_correct=None)
    assert right.value == pytest.approx(case["score"])


@pytest.mark.parametrize("case", GOLDEN["overall_of_wrong_answers"], ids=lambda case: case["source"])
def test_a_wrong_answer_is_paid_for_what_it_is_shown_to_meet_alone(case: dict[str, Any]) -> None:
    verdicts = {"result_match": case["match"], "robust_correct": case["robust"]}
    found = overall_score(*case["scores"], has_error=case["has_error"], **verdicts)
    assert found.value == pytest.approx(case["score"])


def test_the_weights_are_those_of_the_spec() -> None:
    assert list(WEIGHTS.values()) == [0.25, 0.20, 0.15, 0.15, 0.15, 0.10]
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)


def test_performance_is_unknown_without_reference_and_zero_on_error() -> None:
    def said(**changed: Any) -> MetricResult:
        return performance_score(**{"ran": True, "has_reference": True, "closed_answer": False, "cost": None} | changed)

    assert said(has_reference=False).value is None
    assert said(ran=False).value == 0.0
    assert said(closed_answer=True).value is None
    assert said().value == 0.0


_AMOUNTS = st.floats(0, 1e6)


@given(_AMOUNTS, _AMOUNTS, _AMOUNTS)
def test_what_takes_longer_never_scores_more(reference: float, less: float, more: float) -> None:
    less, more = sorted((less, more))
    assert 0 <= part(reference, more, 10.0) <= part(reference, less, 10.0) <= 1


@given(st.sampled_from(["", "syntax_error", "column_error", "type_error", "index_error"]), st.booleans(), st.booleans())
def test_every_wrong_result_has_a_failure_mode(error: str, no_answer: bool, answered: bool) -> None:
    failure = {"mode": "wrong_n", "why": "one row less"}
    assert failure_mode(False, no_answer, answered, error or None, "", failure).label in FAILURE_MODES
    assert failure_mode(True, no_answer, answered, error or None, "", failure).label is None
    unknown = failure_mode(False, False, True, None, "", None)
    assert (unknown.label, unknown.reason is None) == (None, False)


@pytest.mark.parametrize(
    ("generated", "reference", "aspects"),
    [
        ("df.head(3)", "df.head(4)", {"limits"}),
        ("df.nlargest(3, 'a')", "df.nlargest(4, 'a')", {"limits"}),
        ("df.sort_values('a')", "df", {"sorts"}),
        ("df[df.a > 1]", "df[(df.a > 1) & (df.b < 2)]", {"filters"}),
        ("df.a.sum()", "df.a.mean()", {"aggregates"}),
        ("df.groupby('a').agg({'b': 'sum'})", "df.groupby('a').agg({'b': 'max'})", {"aggregates"}),
        ("df.groupby(['a', 'b']).size()", "df.groupby(['a']).size()", {"groupings"}),
        ("a.merge(b, on='k', how='left')", "a.merge(b, on='k')", {"joins"}),
        ("a.merge(b, how='left', on='k')", "a.merge(b, on='k', how='left')", set()),
        ("df[df['a'] > 1]", 'df[df["a"] > 1]', set()),
        ("df.sum(", "df.sum()", set()),
    ],
)
def test_aspects_in_which_code_differs(generated: str, reference: str, aspects: set[str]) -> None:
    assert differences(generated, reference) == aspects


PER_FRUIT = 'df.groupby("fruit")["amount"].sum()'
STORED = {"question": "Which fruits?", "expected": {"fruit": ["apple", "pear", "plum", "fig"]}}
LARGE = {"question": "Texts?", "code": "result = pd.Series(['x' * 60_000, 'y' * 60_000])"}


@needs_sandbox
@pytest.mark.parametrize(
    ("raw", "said", "expected"),
    [
        (
            TOTALS,
            answer(
                'result = df.pivot_table(index="fruit", values="amount", aggfunc="sum").sort_values("amount")[::-1]'
            ),
            {"result_match": True, "understanding_score": 1.0},
        ),
        (  # fruits right, amounts wrong: 4 of 8 cells on both sides
            TOTALS,
            answer(f'result = {PER_FRUIT}.mul(1000).reset_index().sort_values("amount")'),
            {"correctness_score": 0.5},
        ),
        (
            TOTALS,
            answer(f"result = {PER_FRUIT}.reset_index()"),
            {"correctness_score": 0.99, "failure_mode": "missing_sort"},
        ),
        (
            TOTALS,
            answer('result = df["nothing"].sum()'),
            {"correctness_score": 0, "performance_score": 0, "failure_mode": "unknown_column", "recovery_score": None},
        ),
        (
            TOTALS,
            answer("result = df.sum("),
            {"quality_score": 0, "understanding_score": 0, "coverage_score": 0, "failure_mode": "syntax_error"},
        ),
        (TALK, "There were three.", {"failure_mode": "malformed_answer"}),
        (TALK, " ", {"failure_mode": "no_answer"}),
        (
            {"id": "stored", "tables": "sold", "turns": [STORED]},
            answer('result = df[["fruit"]].drop_duplicates()'),
            {"correctness_score": 1, "performance_score": None, "overall_score": 1},
        ),
        (  # the result is too large for the record, and made again
            {"id": "large", "tables": "sold", "turns": [LARGE]},
            answer("result = pd.Series([one * 60_000 for one in 'xy'])"),
            {"correctness_score": 1},
        ),
    ],
    ids=["right", "half", "unordered", "fails", "does not parse", "prose", "silence", "stored", "large"],
)
def test_responses_are_scored(raw: dict[str, Any], said: str, expected: dict[str, Any], stall: PandasShared) -> None:
    found = scores(read(raw, stall), said)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("size", "expected_ms"), [(1000, 100.0), (500, 120.0), (4000, 100.0)], ids=["same", "half", "larger"]
)
def test_making_plain_data_of_results_is_taken_off_both_costs(size: int, expected_ms: float) -> None:
    # The reference takes 50 ms, 40 of them for its result of 1,000 bytes.
    generated, reference = Measurement(0.140, 7, 5, size), Measurement(0.050, 8, 5, 1000)
    mine, theirs = without_telling(generated, reference, Measurement(0.010, 1, 5, 40))
    assert (mine.seconds, theirs.seconds) == (pytest.approx(expected_ms / 1000), pytest.approx(0.010))
    assert (mine.peak_bytes, theirs.peak_bytes) == (7, 8)


@pytest.mark.parametrize(
    ("seconds", "rounds", "least"),
    [
        ([0.038, 0.030, 0.020], 3, 0.020),  # until it is seen that the machine was busy
        ([0.030, 0.024, 0.020], 2, 0.024),
        ([0.030, 0.030, 0.030, 0.020], 3, 0.030),
        ([0.024, 0.020], 1, 0.024),  # a ratio of 0.83 costs nothing
        ([0.050, 0.020], 1, 0.050),  # more than other work explains
    ],
)
def test_what_seems_a_little_too_slow_is_measured_again(
    seconds: list[float], rounds: int, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(seconds)

    class Busy:
        def measure(self, *_: object, **__: object) -> list[Measurement]:
            return [Measurement(next(times), 0, 5, 1), Measurement(0.020, 0, 5, 1), Measurement(0.020, 0, 5, 1)]

    monkeypatch.setattr(performance, "sandbox", lambda layer: Busy())
    measured = measure("result = 1", "result = 2", {}, 5)
    assert isinstance(measured, Measured)
    assert (measured.generated.seconds, measured.generated.runs) == (least, 5 * rounds)


@needs_sandbox
def test_slow_code_is_told_from_the_reference(stall: PandasShared) -> None:
    slow = "x = 0\nfor i in range(400_000):\n    x += i\n"
    reference, case = LARGEST["turns"][0]["code"], read(LARGEST, stall)
    paths = case.context.paths
    measured = measure(slow + reference, reference, paths, 2)
    assert isinstance(measured, Measured)
    assert measured.generated.seconds > measured.reference.seconds
    assert scores(case, answer(f"{reference}more = 1"), measured=True)["performance_score"] > 0
    same = measure(reference, f"{reference}\n", paths, 5)
    assert isinstance(same, Measured)
    assert (same.generated, same.generated.runs) == (same.reference, 1)
