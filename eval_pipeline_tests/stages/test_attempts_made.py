"""What is asked: prompts with the conversation so far, samples, recovery attempts, and calls that fail."""

import json
from collections import Counter
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from eval_pipeline.chain.delivering import figures_of
from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.providers.base import Call, CallError, FatalCallError
from eval_pipeline.reports.contents.figures import headline_figures
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.stages.attempts import model_calls, sink
from eval_pipeline.stages.attempts.rows import SPENT, load_attempts
from eval_pipeline.stages.reporting import profile
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline_tests.chains import INGESTING, ran, ran_of_suite
from eval_pipeline_tests.support import BROKEN, DAY, Lab, Puppet, case, number

THREE = case("one", ("50", 50.0), ("add(50, 7)", 57.0), ("subtract(50, 1)", 49.0))


def conversation(lab: Lab, **settings: object) -> None:
    lab.suite(cases=[THREE])
    lab.versions({"name": "puppet", "provider": "puppet", **settings})


def prompt_of(turn: int, number: int = 0) -> str:
    (call,) = [call for call in Puppet.asked if (call.turn_index, call.number) == (turn, number)]
    return call.prompt.text()


def test_earlier_turns_are_shown_with_the_gold_answers(lab: Lab, puppet: type[Puppet]) -> None:
    conversation(lab)
    puppet.answer = staticmethod(lambda call: number(8080.25))
    lab.evaluate(upto="generations")
    assert "57" in prompt_of(2)
    assert "8080.25" not in prompt_of(2)
    assert "57" not in prompt_of(1).rpartition("[user]")[2]
    # What simulated models fail by.
    assert {call.turn_index: call.complexity for call in puppet.asked} == {0: 0, 1: 1, 2: 1}


def test_earlier_turns_are_shown_with_the_models_own_first_answers(lab: Lab, puppet: type[Puppet]) -> None:
    """A first answer that did not run is shown as none, also to the turns after it, whatever its recovery gave."""
    conversation(lab, history="own")
    said = {(0, 0): number(8080.25), (1, 0): BROKEN, (1, 1): number(7171.5), (2, 0): number(49)}
    puppet.answer = staticmethod(lambda call: said[call.turn_index, call.number])
    lab.evaluate(upto="turn_metrics")
    assert "8080.25" in prompt_of(1)
    assert "8080.25" in prompt_of(2)
    assert "(no answer)" in prompt_of(2)
    assert "8080.25" in prompt_of(1, number=1)
    assert "(no answer)" not in prompt_of(1, number=1)
    assert not any("7171.5" in call.prompt.text() for call in puppet.asked)
    assert lab.sql("SELECT answer, correct FROM turn_results ORDER BY turn_index") == [
        ("8080.25", False),
        ("7171.5", False),
        ("49", True),
    ]


@pytest.mark.parametrize(
    ("answers", "asked", "outcome", "most"),
    [
        ([BROKEN, number(50)], 2, "ran", 2),
        ([BROKEN, number(1)], 2, "ran", 2),  # wrong, but it runs
        ([BROKEN, BROKEN, number(50)], 3, "ran", 2),
        ([BROKEN, "", BROKEN], 3, "failed", 2),
        ([BROKEN, CallError(CallErrorKind.REFUSED, "no")], 2, "call_error", 2),
        ([number(1)], 1, "ran", 2),
        ([CallError(CallErrorKind.BAD_REQUEST, "no")], 1, "call_error", 2),
        ([BROKEN], 1, "failed", 0),
    ],
)
def test_recovery_ends_with_success_a_failed_call_or_the_last_attempt(
    lab: Lab, puppet: type[Puppet], answers: list[str | Exception], asked: int, outcome: str, most: int
) -> None:
    lab.suite(cases=[case("one", ("50", 50.0))])
    lab.versions({"name": "puppet", "provider": "puppet", "max_recovery_attempts": most})
    puppet.answer = staticmethod(lambda call: answers[call.number])
    lab.evaluate(upto="turn_metrics")
    assert [call.number for call in puppet.asked] == list(range(asked))
    assert lab.sql("SELECT outcome, attempts FROM turn_results") == [(outcome, asked)]
    if most == 0:
        assert lab.sql("SELECT recovery_attempts_count, recovery_score FROM finqa_turns") == [(0, None)]


def test_a_recovery_prompt_shows_what_was_written_and_the_error_before(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite(cases=[case("one", ("50", 50.0))])
    lab.versions({"name": "puppet", "provider": "puppet"})
    wrong = json.dumps({"plan": [{"tool": "compute", "operation": "divide", "args": [5, 0]}]})
    puppet.answer = staticmethod(lambda call: [wrong, "", number(50)][call.number])
    lab.evaluate(upto="recovery_attempts")
    first, second, third = (call.prompt for call in puppet.asked)
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[-2].text == wrong
    errors = [row[0] for row in lab.sql("SELECT error_message FROM attempts WHERE outcome = 'failed' ORDER BY number")]
    assert errors[0] in second.messages[-1].text
    assert errors[1] in third.messages[-1].text
    assert third.messages[-2].text == "(empty)"  # some endpoints refuse an empty message
    assert puppet.asked[1].failed_with == "value_error"
    rows = lab.sql("SELECT prompt_hash, count(*) FROM attempts JOIN prompts USING (prompt_hash) GROUP BY 1")
    assert [count for _, count in rows] == [1, 1, 1]


def test_samples_are_asked_each_for_itself_and_counted_by_pass_at_k(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite(cases=[case("one", ("50", 50.0)), case("two", ("7", 7.0))])
    lab.versions({"name": "puppet", "provider": "puppet", "samples_per_turn": 3})
    right = {("one", 0), ("one", 2), ("two", 1)}
    puppet.answer = staticmethod(
        lambda call: call.gold.oracle() if (call.case_id, call.sample) in right else number(-123)
    )
    lab.evaluate()
    assert Counter(call.turn_id for call in puppet.asked) == {"small/one#0": 3, "small/two#0": 3}
    rows = lab.sql("SELECT case_id, sample, correct FROM turn_results")
    assert {(c, s) for c, s, correct in rows if correct} == right
    found = dict(lab.sql("SELECT metric, mean FROM statistics WHERE metric LIKE 'pass%' AND split = 'all'"))
    # one: 2 of 3 right, two: 1 of 3.
    expected = {"pass@1": 0.5, "pass^1": 0.5, "pass@2": (1 + 2 / 3) / 2, "pass^2": (1 / 3 + 0) / 2}
    assert found == pytest.approx(expected | {"pass@3": 1.0, "pass^3": 0.0})
    ((n, clusters),) = lab.sql("SELECT n, clusters FROM statistics WHERE metric = 'pass@2'")
    assert (n, clusters) == (2, 2)
    assert lab.one("SELECT mean FROM statistics WHERE metric = 'correct' AND split = 'all'") == 0.5
    track, partition = lab.workspace().track("small"), Partition("small", "puppet", DAY)
    evaluation = Evaluation(lab.workspace().record, partition, profile(track, figures_of(track)))
    shown = {figure.name: figure for figure in headline_figures(evaluation)}
    assert shown["pass@2"].label == "pass@2: right at least once in 2 tries"
    assert (shown["pass@2"].value, shown["pass^3"].value, shown["pass@3"].unit) == (pytest.approx(5 / 6), 0.0, "rate")


def test_one_sample_has_no_pass_at_k(small: Lab) -> None:
    small.evaluate(upto="statistics")
    assert small.one("SELECT count(*) FROM statistics WHERE metric LIKE 'pass%'") == 0


def test_a_call_that_failed_is_recorded_and_asked_again_by_the_next_run(small: Lab, puppet: type[Puppet]) -> None:
    failed = CallError(CallErrorKind.OVERLOADED, "too many")
    puppet.answer = staticmethod(lambda call: failed if call.case_id == "beta" else call.gold.oracle())
    small.evaluate(upto="turn_metrics")
    query = "SELECT outcome, error_class, tokens, correct FROM turn_results WHERE case_id = 'beta'"
    assert small.sql(query) == [("call_error", "call_error", 0, False)]
    assert small.sql("SELECT call_error, error_message, response FROM attempts WHERE case_id = 'beta'") == [
        ("overloaded", "too many", None)
    ]
    puppet.reset()
    made = small.evaluate(upto="turn_metrics")
    assert puppet.turns_asked() == ["beta#0"]
    assert not made["generations"].reused
    assert small.sql(query) == [("ran", None, 110, True)]
    puppet.reset()
    assert small.evaluate(upto="turn_metrics")["generations"].reused
    assert not puppet.asked


def test_a_refusal_is_final(small: Lab, puppet: type[Puppet]) -> None:
    puppet.answer = staticmethod(lambda call: CallError(CallErrorKind.REFUSED, "I would rather not"))
    small.evaluate(upto="generations")
    puppet.reset()
    assert small.evaluate(upto="generations")["generations"].reused
    assert not puppet.asked


def test_a_run_that_cannot_succeed_ends_at_once_and_leaves_nothing_half_done(small: Lab, puppet: type[Puppet]) -> None:
    def answer(call: Call) -> str | Exception:
        return FatalCallError("the key is wrong") if call.case_id == "beta" else call.gold.oracle()

    puppet.answer = staticmethod(answer)
    with pytest.raises(FatalCallError, match="the key is wrong"):
        small.evaluate(upto="generations")
    assert not list((small.home.record / "generations").rglob("*.parquet"))
    puppet.reset()
    small.evaluate(upto="generations")
    assert puppet.turns_asked() == ["beta#0"]


def test_what_a_process_keeps_of_its_attempts_is_what_another_reads(lab: Lab, puppet: type[Puppet]) -> None:
    """Scoring takes either: tables must not depend on whether the process was started anew in between."""
    conversation(lab, price={"input": 1, "output": 2})
    refused = CallError(CallErrorKind.REFUSED, "no")
    said: dict[tuple[int, int], Any] = {(0, 0): BROKEN, (0, 1): number(50), (1, 0): refused, (2, 0): number(49)}
    puppet.answer = staticmethod(lambda call: said[call.turn_index, call.number])
    made, partition, run = lab.workspace(), Partition("small", "puppet", DAY), RunContext("run", "")
    ran_of_suite(made, "small", *INGESTING)
    ran(made, partition, "generations", "recovery_attempts", run=run)
    for table in (GENERATIONS, RECOVERY_ATTEMPTS):
        kept, read = (load_attempts(Inputs.of(seen, partition), table) for seen in (made, lab.workspace()))
        assert [dict(spent) for spent, _ in kept] == [dict(spent) for spent, _ in read]
        assert kept and {tuple(spent) for spent, _ in kept} == {SPENT}
        for (_, mine), (_, theirs) in zip(kept, read, strict=True):
            same = ("turn_id", "sample", "number", "prompt_hash", "call_failure", "artefact", "outcome")
            assert [getattr(mine, name) for name in same] == [getattr(theirs, name) for name in same]


@pytest.mark.parametrize(("answered", "charged"), [(3, True), (3, False), (0, True)])
def test_what_calls_took_is_told_of_those_that_are_paid_for(
    answered: int, charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"calls_told": {"calls": 4}, "limit_facts": {}, "traits_of": SimpleNamespace(charged=charged)}
    told["shared_limit"] = SimpleNamespace(limit=8, lowest=2.5)
    for name, value in told.items():
        monkeypatch.setattr(model_calls, name, lambda _, value=value: value)
    counts = SimpleNamespace(answered=answered, refused=1, tokens=70, usd=0.5, journal_hits=2, failures=1)
    found = model_calls.asking_facts(SimpleNamespace(version=SimpleNamespace(provider="p"), counts=counts))  # type: ignore[arg-type]
    paid = {"tokens_spent": 70, "usd_spent": 0.5, "in_flight_limit": 8, "in_flight_limit_lowest": 2}
    assert found == {"calls": 4, "journal_hits": 2, "call_errors": 1, "refused_by_budget": 1} | (
        paid if answered and charged else {}
    )


def test_what_was_never_asked_has_no_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "attempt_columns", lambda track, placed: {})
    monkeypatch.setattr(sink, "not_asked", lambda attempt: attempt == "refused by the budget")
    monkeypatch.setattr(sink, "validation_columns", list)
    version = SimpleNamespace(identity_hash=lambda: "h")
    own: Any = SimpleNamespace(_version=version, _simulated=False, _track=None, _validation=Mock(), made=None)
    placed: list[Any] = [SimpleNamespace(attempt=one) for one in ("refused by the budget", "answered")]
    assert sink.AttemptSink._attempt_columns(own, placed) == {"identity_hash": ["h", "h"], "simulated": [False, False]}
    own._validation.write.assert_called_once_with(placed[1:])
