"""Aggregates of turns made by hand, against figures worked out by hand."""

import json
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.analysis.aggregates.agreement import agreement_rows
from eval_pipeline.analysis.aggregates.calibration import calibration_rows
from eval_pipeline.analysis.aggregates.editions import contract_rows, owed_to
from eval_pipeline.analysis.aggregates.errors import message_shape
from eval_pipeline.providers.base import Call
from eval_pipeline_tests.support import BROKEN, Answer, Lab, Puppet, case, number, response

TWO_TURNS = [("50", 50.0), ("add(50, 7)", 57.0)]


def test_cost_counts_every_attempt_over_what_came_out_right(lab: Lab, puppet: type[Puppet]) -> None:
    """Conversations `a` and `c` are all right, `b` is wrong once; a recovery of `c` costs too."""
    lab.suite(cases=[case(name, *TWO_TURNS) for name in "abc"])
    lab.versions({"name": "puppet", "provider": "puppet", "price": {"input": 10, "output": 100}})

    def answer(call: Call) -> Answer:
        if call.turn_id == "small/b#1":
            return response(number(-1), 500, 50)
        if call.turn_id == "small/c#0" and call.number == 0:
            return response(BROKEN, 200, 20)
        return response(call.gold.oracle(), 100, 10)

    puppet.answer = staticmethod(answer)
    lab.evaluate()
    ((tokens, usd, good, conversations, right, turns),) = lab.sql(
        "SELECT tokens_total, usd_total, successful_conversations, conversations, correct_turns, turns "
        "FROM cost_per_correct_answer"
    )
    tokens_in, tokens_out = 5 * 100 + 500 + 200, 5 * 10 + 50 + 20
    assert (tokens, good, conversations, right, turns) == (tokens_in + tokens_out, 2, 3, 5, 6)
    assert usd == pytest.approx((tokens_in * 10 + tokens_out * 100) / 1e6)
    ((per_success, usd_per_success, per_turn, low, high, reason),) = lab.sql(
        "SELECT tokens_per_success, usd_per_success, tokens_per_correct_turn, tokens_per_correct_turn_low, "
        "tokens_per_correct_turn_high, reason FROM cost_per_correct_answer"
    )
    assert per_success == pytest.approx(tokens / 2)
    assert usd_per_success == pytest.approx(usd / 2)
    assert per_turn == pytest.approx(tokens / 5)
    assert low < per_turn < high
    assert reason is None
    assert lab.one("SELECT mean FROM statistics WHERE metric = 'conversation_success'") == pytest.approx(2 / 3)


def test_every_sample_of_a_case_is_a_conversation_of_its_own(lab: Lab, puppet: type[Puppet]) -> None:
    """Turn 0 wrong in sample 0, turn 1 wrong in sample 1: no conversation is right, though each turn is once."""
    lab.suite(cases=[case("a", *TWO_TURNS), case("b", *TWO_TURNS)])
    lab.versions({"name": "puppet", "provider": "puppet", "samples_per_turn": 2})
    puppet.answer = staticmethod(
        lambda call: number(-1) if call.case_id == "a" and call.sample == call.turn_index else call.gold.oracle()
    )
    lab.evaluate()
    assert lab.sql("SELECT successful_conversations, conversations, correct_turns FROM cost_per_correct_answer") == [
        (2, 4, 6)
    ]
    ((n, clusters, mean),) = lab.sql("SELECT n, clusters, mean FROM statistics WHERE metric = 'conversation_success'")
    assert (n, clusters, mean) == (4, 2, 0.5)


def test_cases_that_share_a_cluster_are_one_independent_group(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite(
        cases=[case("a", ("50", 50.0), cluster="page"), case("b", ("50", 50.0), cluster="page"), case("c", ("7", 7.0))]
    )
    lab.versions({"name": "puppet", "provider": "puppet"})
    lab.evaluate()
    assert lab.sql("SELECT n, clusters FROM statistics WHERE metric = 'correct' AND split = 'all'") == [(3, 2)]


def test_a_missing_cost_is_null_with_its_own_reason(small: Lab, puppet: type[Puppet]) -> None:
    # One turn of two is right in one conversation, no conversation is.
    wrong = {"small/alpha#0", "small/beta#0"}
    puppet.answer = staticmethod(lambda call: number(-1) if call.turn_id in wrong else call.gold.oracle())
    small.evaluate()
    assert small.sql("SELECT tokens_per_success, tokens_per_correct_turn, reason FROM cost_per_correct_answer") == [
        (None, 330.0, "no successful conversation")
    ]
    puppet.answer = staticmethod(lambda call: number(-1))
    small.evaluate(epoch="again")
    ((tokens, per_success, high, reason, usd_reason),) = small.sql(
        "SELECT tokens_total, tokens_per_success, tokens_per_success_high, reason, usd_reason "
        "FROM cost_per_correct_answer"
    )
    assert (tokens, per_success, high) == (330, None, None)
    assert reason == "no successful conversation; no correct turn"
    assert usd_reason == "no price for this model"


def test_splits_have_the_turns_of_their_group(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite(
        cases=[
            case("a", *TWO_TURNS, tags=["t", "u"], features={"has_type2_question": True}),
            case("b", ("50", 50.0), tags=["u"]),
        ]
    )
    lab.versions({"name": "puppet", "provider": "puppet"})
    puppet.answer = staticmethod(lambda call: number(-1) if call.turn_id == "small/a#1" else call.gold.oracle())
    lab.evaluate()
    rows = lab.sql("SELECT split, split_value, n, mean FROM statistics WHERE metric = 'correct'")
    found = {(split, value): (n, mean) for split, value, n, mean in rows}
    assert found["all", "all"] == (3, pytest.approx(2 / 3))
    assert found["tag", "t"] == (2, 0.5)
    assert found["tag", "u"] == (3, pytest.approx(2 / 3))
    assert found["has_type2_question", "true"] == (2, 0.5)
    assert found["has_type2_question", "false"] == (1, 1.0)
    assert found["turn_number", "0"] == (2, 1.0)
    assert found["turn_number", "1"] == (1, 0.0)
    assert found["operations", "0"] == (2, 1.0)
    assert found["operations", "1"] == (1, 0.0)
    assert found["error_class", "wrong_answer"] == (1, 0.0)
    # Never a turn of that kind: null, with the reason.
    ((mean, reason),) = lab.sql(
        "SELECT mean, reason FROM statistics WHERE metric = 'correct' AND split = 'has_duplicate_columns' "
        "AND split_value = 'true'"
    )
    assert mean is None
    assert reason
    levels = lab.sql("SELECT level, n, accuracy FROM accuracy_by_complexity WHERE axis = 'operations' ORDER BY level")
    assert levels == [(0, 2, 1.0), (1, 1, 0.0)]


def test_failed_turns_are_counted_by_class_mode_complexity_recovery_and_shape(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite(cases=[case(name, *TWO_TURNS) for name in "abcd"])
    lab.versions({"name": "puppet", "provider": "puppet", "max_recovery_attempts": 1})
    unknown = '{{"plan": [{{"tool": "compute", "operation": "{}", "args": [1, 2]}}]}}'

    def answer(call: Call) -> Answer:
        where = f"{call.case_id}{call.turn_index}"
        said: dict[str, list[str]] = {
            "a0": [number(-50)],
            "b0": [number(-50)],
            "b1": [unknown.format("cube")] * 2,
            "c1": [unknown.format("sphere")] * 2,
            "d1": [BROKEN, number(57)],
        }
        return said[where][call.number] if where in said else call.gold.oracle()

    puppet.answer = staticmethod(answer)
    lab.evaluate()
    rows = lab.sql("SELECT grouping, value, error_class, turns, share FROM error_analysis")
    found = {row[:3]: row[3:] for row in rows}
    assert found["error_class", "wrong_answer", None] == (2, 0.5)
    assert found["error_class", "value_error", None] == (2, 0.5)
    assert found["failure_mode", "sign_error", None] == (2, 0.5)
    assert found["failure_mode", "execution_error", None] == (2, 0.5)
    assert found["complexity", "0", "wrong_answer"] == (2, 0.5)
    assert found["complexity", "1", "value_error"] == (2, 0.5)
    assert found["recovered", "recovered", "syntax_error"] == (1, pytest.approx(1 / 3))
    assert found["recovered", "not recovered", "value_error"] == (2, pytest.approx(2 / 3))
    shapes = {value: count for (grouping, value, _), (count, _) in found.items() if grouping == "message_shape"}
    # Messages that differ in what they quote only are of one shape.
    assert sorted(shapes.values()) == [2, 2]
    assert not any("cube" in shape or "sphere" in shape for shape in shapes)


@pytest.mark.parametrize(
    ("message", "shape"),
    [
        ("unknown operation 'cube' in step 3", "unknown operation '…' in step N"),
        ('no "sales" at line 12,\n column 7', "no '…' at line N column N"),
        ("expected -1,234.5e6, got `x`", "expected N, got '…'"),
        ("plain words", "plain words"),
        ("no code CP0111; near it: CP011, 1A, GDP_2", "no code CP0111; near it: CP011, 1A, GDP_2"),
        ("after 30s, 2.5 MB and 7ms", "after Ns, N MB and Nms"),
    ],
)
def test_the_shape_of_a_message(message: str, shape: str) -> None:
    assert message_shape(message) == shape


@given(
    st.lists(st.sampled_from(["step {}", "'{}' is unknown", "line {}: bad"]), min_size=1, max_size=3),
    st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)),
)
def test_messages_that_differ_in_numbers_only_have_one_shape(parts: list[str], values: tuple[int, int]) -> None:
    one, other = (" and ".join(parts).replace("{}", str(value)) for value in values)
    assert message_shape(one) == message_shape(other)


def test_the_ceiling_threshold_of_the_suite_counts(lab: Lab, puppet: type[Puppet]) -> None:
    from eval_pipeline.core.errors import UsageError

    lab.suite(options={"ceiling_threshold": 0.9})
    lab.versions({"name": "puppet", "provider": "puppet"})
    lab.evaluate()
    assert {row[0] for row in lab.sql("SELECT threshold FROM complexity_ceiling")} == {0.9}
    lab.suite(options={"ceiling_threshold": 1.5})
    with pytest.raises(UsageError, match="ceiling_threshold must lie between 0 and 1"):
        lab.evaluate()


@pytest.mark.parametrize(
    ("relaxations", "insisted", "correct", "right"),
    [
        ("none", "none", True, dict.fromkeys("exact expert bird spider defog livesqlbench".split(), "")),
        ("duplicates", "none", True, {"expert": "duplicates", "bird": "duplicates", "livesqlbench": "duplicates"}),
        # BIRD and LiveSQLBench compare sets whatever the question says.
        ("duplicates", "duplicates", False, {"bird": "duplicates", "livesqlbench": "duplicates"}),
        ("column_order", "none", True, {"exact": "column_order", "expert": "column_order", "spider": "column_order",
                                        "defog": "column_order"}),
        ("extra_columns, row_order", "none", True, {"expert": "extra_columns row_order",
                                                    "defog": "extra_columns row_order"}),
        ("extra_columns, row_order", "row_order", False, {}),
        # Owed to neither of two ways that both suffice.
        ("rounding | tolerance", "none", True, {"expert": "", "defog": "tolerance", "livesqlbench": "rounding"}),
        ("missing_columns", "none", False, {}),
        (None, "none", False, {}),
        # No SQL is expected: the verdict of the turn counts.
        (None, None, True, dict.fromkeys("exact expert bird spider defog livesqlbench".split(), "")),
        (None, None, False, {}),
    ],
)  # fmt: skip
def test_what_an_answer_owes_to_a_contract(
    relaxations: str | None, insisted: str | None, correct: bool, right: dict[str, str]
) -> None:
    """By hand, from what the presets overlook (docs/sql.md)."""
    for preset in ("exact", "expert", "bird", "spider", "defog", "livesqlbench"):
        expected = {*right[preset].split()} if preset in right else None
        assert owed_to(cast("Any", preset), relaxations, insisted, correct) == expected, preset


def test_unscored_turns_are_in_no_accuracy_under_a_contract() -> None:
    told = [("none", "none", True), ("duplicates", "none", True), ("duplicates", "none", None), (None, None, False)]
    relaxations, insisted, correct = (list(column) for column in zip(*told, strict=True))

    def rows(count: int) -> list[dict[str, Any]]:
        wide = pa.table({"relaxations": pa.array(relaxations[-count:], pa.string()), "insisted": insisted[-count:]})
        verdicts = np.array(correct[-count:], dtype=np.float64)  # None is NaN
        turns = SimpleNamespace(wide=wide, floats={"correct": verdicts}.__getitem__, clusters=np.arange(count))
        return contract_rows(cast("Any", turns))

    found = {row["contract"]: row for row in rows(4)}
    assert {name: (row["correct"], row["turns"]) for name, row in found.items()} == {
        "exact": (1, 3), "expert": (2, 3), "bird": (2, 3), "spider": (1, 3), "defog": (1, 3), "livesqlbench": (2, 3),
    }  # fmt: skip
    assert found["bird"]["accuracy"] == pytest.approx(2 / 3)
    assert found["bird"]["low"] < 2 / 3 < found["bird"]["high"]
    assert json.loads(found["bird"]["owed_to"]) == {"duplicates": 1}
    correct[-1] = None
    assert rows(2) == [], "no turn has a verdict"


def _judged(*pairs: tuple[float | None, float | None]) -> dict[str, Any]:
    """The row of what a judge (None: it was not asked) and the evidence (None: undecided) say of each turn."""
    rows = [
        {"turn_id": str(n), "sample": 0, "value": said, "reason": None, "error": None, "asked": said is not None}
        | {"cached": False, "input_tokens": 5, "output_tokens": 2, "usd": 0.5}
        for n, (said, _) in enumerate(pairs)
    ]
    decided = np.array([verdict for _, verdict in pairs], dtype=np.float64)  # None is NaN
    wide = pa.table(
        {"turn_id": [row["turn_id"] for row in rows], "sample": [0] * len(rows), "equivalence_rung": ["r"] * len(rows)}
    )
    judgements = pa.Table.from_pylist(rows)
    turns = SimpleNamespace(
        read=lambda *_: judgements, wide=wide, floats=lambda _: decided, clusters=np.arange(len(rows))
    )
    (row,) = agreement_rows(cast("Any", turns))
    return row


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        # right twice, and twice called the same what is different
        (
            [(1.0, 0.0), (1.0, 0.0), (1.0, 1.0), (1.0, 1.0)],
            {"n": 4, "agreement": 0.5, "kappa": 0.0, "judge_same_evidence_same": 2, "judge_same_evidence_different": 2},
        ),
        # three pairs differ, of which `partly` is said of one and `same` of another; one is the same
        (
            [(1.0, 0.0), (0.0, 0.0), (0.5, 0.0), (1.0, 1.0)],
            {"true_positive_rate": 1.0, "true_negative_rate": 2 / 3, "base_rate": 0.25},
        ),
        # where nothing is the same, there is no rate of it
        ([(0.0, 0.0)], {"n": 1, "true_positive_rate": None, "true_negative_rate": 1.0, "base_rate": 0.0}),
        # asked where the evidence has decided, where it has not, and spared
        (
            [(1.0, 1.0), (0.0, None), (None, 0.0), (None, None)],
            {"n": 1, "judge_calls": 2, "judge_tokens": 14, "judge_usd": 1.0, "calls_saved": 1, "calls_avoidable": 1},
        ),
    ],
)
def test_a_judge_is_measured_against_the_evidence(
    pairs: list[tuple[float | None, float | None]], told: dict[str, Any]
) -> None:
    found = _judged(*pairs)
    assert {name: found[name] for name in told} == {
        name: pytest.approx(value) if isinstance(value, float) else value for name, value in told.items()
    }
    if found["true_negative_rate"] and found["true_negative_rate"] < 1:
        assert 0 < found["true_negative_rate_low"] < found["true_negative_rate"] < found["true_negative_rate_high"] < 1


def test_confidence_is_held_against_what_came_out_right() -> None:
    """10 sure answers with one wrong, 10 unsure ones with half of them wrong: as promised. One says nothing."""
    wide = pa.table({"confidence": ["high"] * 10 + ["low"] * 10 + [None]})
    right = np.array([0, *[1] * 9, *[0] * 5, *[1] * 5, 0], dtype=np.float64)
    turns = SimpleNamespace(wide=wide, floats={"correct": right}.__getitem__, clusters=np.arange(21))
    rows = calibration_rows(cast("Any", turns))
    assert [(row["level"], row["n"], row["accuracy"], row["nominal"]) for row in rows] == [
        ("all", 20, 0.7, None), ("high", 10, 0.9, 0.9), ("low", 10, 0.5, 0.5),
    ]  # fmt: skip
    assert rows[0]["calibration_score"] == pytest.approx(1.0)
    assert "Too few answers" in rows[0]["verdict"]
