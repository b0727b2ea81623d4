"""Performance and overall by golden cases, the failure modes, and the metrics of whole turns."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import Case, MetricResult
from eval_pipeline.sandbox.returned.outcomes import Measurement
from eval_pipeline_plugins.tracks.pandas_code import FAILURE_MODES
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared
from eval_pipeline_plugins.tracks.pandas_code.damage import damaged_response
from eval_pipeline_plugins.tracks.pandas_code.metrics.correctness import result_match
from eval_pipeline_plugins.tracks.pandas_code.metrics.failure_mode import failure_mode
from eval_pipeline_plugins.tracks.pandas_code.metrics.overall import WEIGHTS, overall_score, overall_score_from_words
from eval_pipeline_plugins.tracks.pandas_code.metrics.performance import part, performance_score
from eval_pipeline_plugins.tracks.pandas_code.results.structure import differences
from eval_pipeline_plugins.tracks.pandas_code.running import performance
from eval_pipeline_plugins.tracks.pandas_code.running.performance import Measured, measure, without_telling
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.pandas_code.helpers import (
    LARGEST,
    TALK,
    TOTALS,
    answer,
    needs_sandbox,
    read,
    scores,
    scores_of,
    stall_lab,
)

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
    assert isinstance(measured, Measured) and measured.generated.seconds > measured.reference.seconds
    assert scores(case, answer(f"{reference}more = 1"), measured=True)["performance_score"] > 0
    same = measure(reference, f"{reference}\n", paths, 5)
    assert isinstance(same, Measured) and (same.generated, same.generated.runs) == (same.reference, 1)


RICH: dict[str, Any] = {
    "id": "rich",
    "turns": [
        {
            "question": "Join sold and cities on city, keep rows where the amount is greater than 2 and the country is "
            "NO. What is the total amount per fruit and city? Give the top 2 by amount, sorted by amount descending.",
            "code": """\
merged = sold.merge(cities, on="city")
wanted = merged[(merged["amount"] > 2) & (merged["country"] == "NO")]
totals = wanted.groupby(["fruit", "city"])["amount"].sum().reset_index()
result = totals.sort_values("amount", ascending=False).head(2)
""",
        }
    ],
}
RUNS = {
    "wrong_n": ("understanding_score", "coverage_score"),
    "missing_sort": ("understanding_score",),
    "wrong_filter": ("understanding_score",),
    "wrong_grouping": ("understanding_score",),
    "wrong_aggregate": ("understanding_score",),
}
"""Modes of code that runs, and the scores one of which falls."""
NOT_MADE = {"wrong_join", "wrong_boundary", "timeout", "wrong_format", "wrong_constant", "wrong_step"}
"""Modes that stand-ins do not make, or not of this gold."""


@pytest.fixture
def rich(stall: PandasShared) -> Case:
    return read(RICH, stall)


def _damaged(case: Case, mode: str) -> str:
    text = damaged_response(case.turns[0].gold, mode, Random(1))
    assert text is not None, mode
    return text


@needs_sandbox
def test_the_gold_scores_one_in_everything(rich: Case) -> None:
    assert scores(rich, TRACK.oracle(rich.turns[0]), measured=True)["overall_score"] == pytest.approx(1.0)


@needs_sandbox
@pytest.mark.parametrize("mode", [mode for mode in FAILURE_MODES if mode not in NOT_MADE])
def test_every_way_is_found_under_its_name_and_in_the_metric_meant_to_see_it(rich: Case, mode: str) -> None:
    found = scores(rich, _damaged(rich, mode))
    assert found["failure_mode"] == mode
    if mode in RUNS:
        assert found["has_error"] is False
        assert found["correctness_score"] < 1
        assert min(found[name] for name in RUNS[mode]) < 1 - 1e-9
        assert found["quality_score"] == pytest.approx(1.0)


@needs_sandbox
@pytest.mark.parametrize("mode", ["syntax_error", "unknown_column", "wrong_dtype"])
def test_code_that_fails_is_an_error_to_recover_from(rich: Case, mode: str) -> None:
    text, right = _damaged(rich, mode), TRACK.oracle(rich.turns[0])
    once, mended, again = scores_of((rich, 0, texts) for texts in ([text], [text, right], [text, text, right]))
    assert (once["has_error"], once["recovery_score"]) == (True, None)
    assert (mended["recovery_score"], mended["correctness_score"]) == (pytest.approx(0.5 + 0.3 + 0.2 / 3), 1.0)
    assert again["recovery_score"] == pytest.approx(0.5483, abs=5e-5)


@needs_sandbox
def test_a_join_of_another_kind_shows_in_the_result(stall: PandasShared) -> None:
    code = 'result = len(sold.merge(cities, how="left", on="city"))'
    turns = [{"question": "Join cities to sold on city, and keep sales without a city. How many rows?", "code": code}]
    case = read({"id": "left", "turns": turns}, stall)
    found = scores(case, _damaged(case, "wrong_join"))
    assert (found["failure_mode"], found["correctness_score"]) == ("wrong_join", 0.0)


@needs_sandbox
def test_a_way_that_the_gold_cannot_go_wrong_in_gives_nothing(stall: PandasShared) -> None:
    case = read({"id": "plain", "turns": [{"question": "How many rows?", "code": "result = len(sold)"}]}, stall)
    for mode in ("wrong_n", "missing_sort", "wrong_filter", "wrong_join", "wrong_grouping"):
        assert damaged_response(case.turns[0].gold, mode, Random(1)) is None
    with pytest.raises(ValueError, match="sign_error"):
        damaged_response(case.turns[0].gold, "sign_error", Random(1))


@needs_sandbox
def test_recovery_figures_are_those_that_were_simulated(lab: Lab) -> None:
    """Every first attempt names an unknown column, and every recovery attempt is right: 0.5 + 0.3 + 0.2/3 each."""
    stall_lab(lab, TOTALS, LARGEST)
    options = {"seed": 3, "rates": {"unknown_column": 1.0}, "recovery_rate": 1.0, "breaking_modes": ["unknown_column"]}
    never = options | {"recovery_rate": 0.0, "class_change_rate": 0.0}
    lab.versions(
        {"name": "mends", "provider": "simulated", "options": options},
        {"name": "never", "provider": "simulated", "options": never},
    )
    for version in ("mends", "never"):
        lab.evaluate("stall", version)
    found = lab.sql(
        "SELECT model_version, avg(has_error::INT), avg(recovery_attempts_count), avg(recovery_score), "
        "avg(correct::INT) FROM pandas_turns GROUP BY ALL ORDER BY ALL"
    )
    assert found == [
        ("mends", 1.0, 1.0, pytest.approx(0.5 + 0.3 + 0.2 / 3), 1.0),
        ("never", 1.0, 2.0, pytest.approx(0.3 * 0.1 + 0.2 * 2 / 3), 0.0),
    ]
    assert lab.sql("SELECT DISTINCT error_class FROM attempts WHERE number = 0") == [("column_error",)]


@pytest.mark.parametrize(
    ("needed", "failure", "told"),
    [
        ([], {"why": "`city == 'Oslo'` is missing"}, "`city == 'Oslo'` is missing"),
        ([], None, "other values"),
        ([["row_order", "shape"]], None, "other values; right with `compare: {overlook: [row_order]}`"),
    ],
)
def test_what_is_wrong_is_said_with_the_line_that_would_accept_it(needed: Any, failure: Any, told: str) -> None:
    assert result_match(0.5, "other values", needed, ["shape"], failure).reason == told
    assert result_match(1.0, "", needed, ["shape"], failure).reason is None
