"""A budget that is reached: no call after it, what there is counts, and the next run asks for the rest."""

from typing import Any

import pytest

from eval_pipeline.asking.budgets import most_input_tokens
from eval_pipeline.core.model import CallErrorKind, Partition, Response
from eval_pipeline.providers import registry
from eval_pipeline.providers.base import Call
from eval_pipeline.stages.checks.budgets import check_budget_kept
from eval_pipeline.stages.checks.verdicts import check_every_turn_once
from eval_pipeline_tests.chains import checked, is_up_to_date, stage_is_current
from eval_pipeline_tests.support import BROKEN, DAY, Lab, Puppet, case, response

PARTITION = Partition("small", "puppet", DAY)
MAX_TOKENS = 100
USED = 150
"""Tokens that each of the puppet's answers takes."""


def limited(lab: Lab, **limits: Any) -> None:
    entry = {"name": "puppet", "provider": "puppet", "max_tokens": MAX_TOKENS, "concurrency": 1}
    lab.versions(entry | {"price": {"input": 10, "output": 10, "cache_write": 10}} | limits)


CASES = [case(f"c{number}", ("50", 50.0), ("add(50, 7)", 57.0)) for number in range(5)]


@pytest.fixture
def long(lab: Lab, puppet: type[Puppet]) -> Lab:
    """Five conversations of two turns."""
    lab.suite(cases=CASES)
    Puppet.answer = lambda call: response(call.gold.oracle(), 120, 30)
    return lab


@pytest.fixture(scope="module")
def most(tmp_path_factory: pytest.TempPathFactory) -> int:
    """What a first turn of the suite reserves; later ones reserve a little more, by less than `USED`."""
    lab = Lab.at(tmp_path_factory.mktemp("measured"))
    lab.suite(cases=CASES)
    limited(lab)
    Puppet.reset()
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(registry.PROVIDERS, "puppet", "eval_pipeline_tests.support:Puppet")
        lab.evaluate(upto="generations")
    amounts = [most_input_tokens(call) + MAX_TOKENS for call in Puppet.asked]
    assert max(amounts) - min(amounts) < USED
    return min(amounts)


def broken_at_first(call: Call) -> Response:
    return response(BROKEN if call.number == 0 else call.gold.oracle(), 120, 30)


def runs(lab: Lab) -> list[dict[str, Any]]:
    names = ["run_id", "status", "turns_planned", "calls", "calls_refused", "tokens_spent", "usd_spent"]
    rows = lab.sql(f"SELECT {', '.join(names)} FROM runs ORDER BY started_at")
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_what_there_is_is_scored_and_published_and_the_rest_is_asked_by_the_next_run(long: Lab, most: int) -> None:
    # After six answers the next call could exceed the limit.
    limited(long, max_tokens_total=6 * USED + most - 1)
    made = long.evaluate(publish=True)
    assert len(Puppet.asked) == 6
    assert made["generations"].facts["refused_by_budget"] == 4
    assert made["turn_metrics"].facts == {"turns": 6, "accuracy": 1.0, "metric_errors": 0}
    assert long.one("SELECT count(*) FROM turn_results") == 6
    assert long.one("SELECT count(*) FROM validation") == 6
    assert long.one("SELECT count(*) FROM errors") == 0
    assert long.one("SELECT count(*) FROM attempts WHERE call_error = 'budget' AND response IS NULL") == 4
    (row,) = runs(long)
    assert row.pop("usd_spent") == pytest.approx(6 * USED * 10 / 1e6)
    assert row == {
        "run_id": "run",
        "status": "incomplete",
        "turns_planned": 10,
        "calls": 6,
        "calls_refused": 4,
        "tokens_spent": 6 * USED,
    }
    assert checked(check_every_turn_once, long.workspace(), PARTITION).passed
    kept = checked(check_budget_kept, long.workspace(), PARTITION)
    assert not kept.passed
    assert all(told in kept.text for told in (f" 900 of {6 * USED + most - 1:,} tokens (max_tokens_total)", " 4 turns"))
    assert not is_up_to_date(long.workspace(), PARTITION)
    asked = set(Puppet.turns_asked())
    Puppet.asked.clear()

    limited(long, max_tokens_total=4 * USED + 2 * most)
    long.evaluate(run_id="second", publish=True)
    assert len(Puppet.asked) == 4
    assert not asked & set(Puppet.turns_asked())
    assert long.one("SELECT count(*) FROM turn_results") == 10
    assert [row["status"] for row in runs(long)] == ["incomplete", "complete"]
    assert checked(check_budget_kept, long.workspace(), PARTITION).passed
    assert is_up_to_date(long.workspace(), PARTITION)


@pytest.mark.always
def test_dollars_hold_and_the_sentence_says_so(long: Lab, most: int) -> None:
    limited(long, max_cost_usd=(2 * USED + most) * 10 / 1e6)
    long.evaluate(upto="recovery_attempts")
    assert len(Puppet.asked) == 3
    text = checked(check_budget_kept, long.workspace(), PARTITION).text
    assert "$0.0045 of $0.0" in text
    assert "7 turns were not asked" in text


def test_a_budget_that_no_call_fits_into_is_told_as_that(long: Lab, most: int) -> None:
    limited(long, max_tokens_total=most - 1)
    long.evaluate(upto="recovery_attempts")
    assert not Puppet.asked
    text = checked(check_budget_kept, long.workspace(), PARTITION).text
    assert all(
        told in text for told in ("too small for one call", f" 0 of {most - 1:,} tokens", "10 turns", "raise it")
    )


def test_all_suites_and_both_asking_steps_of_a_run_share_it(long: Lab, most: int) -> None:
    Puppet.answer = broken_at_first
    long.suite("another", cases=[case("d", ("50", 50.0))])
    recovering = most + 1000  # the prompt of a recovery attempt is longer
    limited(long, max_tokens_total=12 * USED + recovering)
    long.evaluate(upto="recovery_attempts")
    generated, recovered = (sum((call.number > 0) == later for call in Puppet.asked) for later in (False, True))
    assert generated == 10
    assert 0 < recovered < 10
    long.evaluate("another", upto="recovery_attempts")  # the same run: nothing is left for it
    assert generated + recovered == len(Puppet.asked)
    long.evaluate("another", run_id="another run", upto="recovery_attempts")
    assert len(Puppet.asked) == generated + recovered + 2


def test_recovery_attempts_that_it_does_not_allow_are_not_made_and_made_later(long: Lab, most: int) -> None:
    Puppet.answer = broken_at_first
    limited(long, max_tokens_total=10 * USED + most)
    long.evaluate(publish=True)
    made = [call.number for call in Puppet.asked]
    assert made.count(0) == 10
    refused = 10 - made.count(1)
    assert refused > 0
    assert long.one("SELECT count(*) FROM attempts WHERE number > 0") == made.count(1)
    assert long.one("SELECT count(*) FROM turn_results") == 10
    assert long.one("SELECT count(*) FROM attempts WHERE call_error IS NOT NULL") == 0
    verdict = checked(check_budget_kept, long.workspace(), PARTITION)
    assert not verdict.passed
    assert f": {refused} recoveries were cut short; " in verdict.text
    assert runs(long)[-1]["status"] == "incomplete"
    assert not stage_is_current(long.workspace(), PARTITION, "recovery_attempts")

    Puppet.asked.clear()
    limited(long)
    long.evaluate(run_id="second", publish=True)
    assert [call.number for call in Puppet.asked] == [1] * refused
    assert long.one("SELECT count(*) FROM turn_results WHERE correct") == 10
    assert stage_is_current(long.workspace(), PARTITION, "recovery_attempts")


def test_with_its_own_history_a_conversation_ends_where_the_budget_does(long: Lab, most: int) -> None:
    limited(long, max_tokens_total=3 * USED + most - 1, history="own")
    long.evaluate(upto="cost_per_correct_answer")
    asked = Puppet.turns_asked()
    assert len(asked) == 3
    whole = sum(turn.replace("#0", "#1") in asked for turn in asked) // 2
    assert long.one("SELECT n FROM statistics WHERE metric = 'conversation_success'") == whole
    assert long.one("SELECT successful_conversations FROM cost_per_correct_answer") == whole
    assert all(turn.replace("#1", "#0") in asked for turn in asked)
    assert long.one("SELECT count(*) FROM turn_results") == 3


def test_answers_in_the_journal_cost_nothing(long: Lab, most: int) -> None:
    limited(long, max_tokens_total=6 * USED + most - 1)
    long.evaluate(upto="turn_metrics")
    Puppet.asked.clear()
    limited(long, max_tokens_total=3 * USED + most - 1)
    long.evaluate(run_id="second", upto="turn_metrics")
    assert len(Puppet.asked) == 3
    assert long.one("SELECT count(*) FROM turn_results") == 9


def test_the_command_says_so_and_exits_with_1(long: Lab, most: int) -> None:
    limited(long, max_tokens_total=6 * USED + most - 1)
    said = long.cli("run", "--no-report", "--eval-date", DAY.isoformat())
    assert said.code == 1
    assert "check budget_kept: the budget of the run is reached, 900 of " in said.err
    assert "100% [14% to 100%]      6       –  $0.0015  4 unanswered" in said.out
    assert len(Puppet.asked) == 6
    assert long.one("SELECT status FROM runs") == "incomplete"


@pytest.mark.parametrize("kind", [CallErrorKind.REFUSED, CallErrorKind.MAX_TOKENS])
def test_answers_that_are_none_are_kept_paid_for_and_not_asked_again(small: Lab, kind: CallErrorKind) -> None:
    Puppet.answer = lambda call: response("I would rather", 100, 10, stop_reason="stopped", call_error=kind)
    small.evaluate()
    assert len(Puppet.asked) == 3
    told = small.sql("SELECT DISTINCT call_error, response, stop_reason, input_tokens, artefact, outcome FROM attempts")
    assert told == [(kind.value, "I would rather", "stopped", 100, None, "call_error")]
    assert small.one("SELECT count(*) FROM turn_results WHERE NOT correct") == 3
    assert small.one("SELECT tokens_total FROM cost_per_correct_answer") == 330
    assert is_up_to_date(small.workspace(), PARTITION)
    small.evaluate(run_id="again", upto="generations")
    assert len(Puppet.asked) == 3


def test_a_budget_that_answers_without_token_counts_used_up_says_so(long: Lab, most: int) -> None:
    Puppet.answer = lambda call: Response(call.gold.oracle())
    limited(long, max_tokens_total=3 * (most + USED))
    long.evaluate(upto="generations")
    told = checked(check_budget_kept, long.workspace(), PARTITION)
    asked = len(Puppet.asked)
    assert 0 < asked < 10 and not told.passed
    assert f"; {asked} of {asked} answers came without token counts, so each counts with all that it could" in told.text
