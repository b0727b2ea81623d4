"""The limit of a command: shared by model versions, recovery attempts and judge, told before and after."""

from typing import Any

import pytest

from eval_pipeline.asking.budgets import most_input_tokens
from eval_pipeline.core.covering.cost_limit import MAX_COST, CostLimit
from eval_pipeline.core.shown import dollars
from eval_pipeline.providers.base import Call
from eval_pipeline.stages.checks.budgets import check_budget_kept
from eval_pipeline.stages.checks.verdicts import check_every_turn_once
from eval_pipeline.state.place import state_place
from eval_pipeline.workspace.runs import RunContext
from eval_pipeline_tests.support import BROKEN, DAY, Lab, Puppet, case, response

PRICE = {"input": 10, "output": 10, "cache_write": 10}
USED = 150
"""Tokens that each of the puppet's answers takes: 0.0015 dollars."""
RUN = ("run", "--no-report", "--eval-date", DAY.isoformat())


@pytest.fixture
def two(lab: Lab, puppet: type[Puppet]) -> Lab:
    """Five conversations of two turns, two model versions without budgets; every first answer is broken."""
    lab.suite(cases=[case(f"c{number}", ("50", 50.0), ("add(50, 7)", 57.0)) for number in range(5)])
    versions(lab)
    Puppet.answer = broken_at_first
    return lab


def versions(lab: Lab, **settings: Any) -> None:
    entry = {"provider": "puppet", "max_tokens": 100, "concurrency": 4, "price": PRICE, "max_recovery_attempts": 1}
    lab.versions(*({"name": name, "model": name} | entry | settings for name in ("first", "second")))


def broken_at_first(call: Call) -> Any:
    return response(BROKEN if call.number == 0 else call.gold.oracle(), 120, 30)


def test_model_versions_and_recoveries_of_a_command_share_it_and_the_next_asks_for_the_rest(two: Lab) -> None:
    limit = 0.08  # all 40 answers cost 0.06; near the end, a call reserves several times what it costs
    said = two.cli(*RUN, "--max-cost", str(limit))
    asked = [call.number for call in Puppet.asked]
    spent = len(asked) * USED * 10 / 1e6
    largest = max(most_input_tokens(call) + 100 for call in Puppet.asked) * 10 / 1e6
    assert limit - largest < spent <= limit, "nothing is left in which a call surely fits"
    assert asked[:20] == [0] * 10 + [1] * 10, "the first model version, with its recoveries"
    assert asked.count(0) == 20
    assert said.code == 1
    assert f"may spend up to {dollars(limit)} of {dollars(limit)}: all calls together could cost $" in said.err
    left = 40 - len(asked)
    assert f"spent:    {dollars(spent)} of {dollars(limit)}; {left} calls not made because of this limit" in said.out
    told = (
        f"the limit of the command is reached, {dollars(spent)} of {dollars(limit)}: {left} recoveries were cut short"
    )
    assert f"error: small, second: check budget_kept: {told}; the next run asks for the rest" in said.err
    assert two.sql("SELECT status FROM runs ORDER BY model_version") == [("complete",), ("incomplete",)]
    Puppet.asked.clear()
    again = two.cli(*RUN, "--max-cost", "1")
    assert (again.code, len(Puppet.asked)) == (0, left)
    assert f"spent:    ${left * USED * 10 / 1e6:.4f} of $1.00\n" in again.out
    assert "may spend up to $" not in two.cli(*RUN, "--max-cost", "1").err, "all is up to date"


@pytest.mark.always
def test_turns_that_it_does_not_allow_are_not_asked(two: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_COST, "0.001")
    said = two.cli(*RUN)
    assert not Puppet.asked
    assert "the limit of $0.0010 of the command is too small for one call: 10 turns were not asked" in said.err
    assert "spent:    $0.00 of $0.0010; 20 calls not made because of this limit" in said.out
    scored = check_every_turn_once(two.inputs(version="first"))
    assert (scored.passed, scored.facts["planned"], scored.facts["not_asked"]) == (True, 10, 10)
    limit = CostLimit("night x", 0.04)
    inputs = two.inputs(version="first", run=RunContext("r", cost_limit=limit))
    facts = two.stage("generations", inputs).facts
    asked = len(Puppet.asked)
    assert 0 < asked < 10
    assert facts["limit_usd"] == limit.usd
    assert facts["limit_spent_usd"] == pytest.approx(asked * USED * 10 / 1e6)
    assert facts["refused_by_budget"] == 10 - asked
    told = (
        f"the limit of the night is reached, {dollars(asked * USED * 10 / 1e6)} of $0.0400: {10 - asked} turns were not"
    )
    assert check_budget_kept(inputs).text.startswith(told)
    assert state_place().spent_under(two.home.root, limit.account).refused == {f"small · first · {DAY}": 10 - asked}


def test_a_price_that_nobody_knows_is_told_before_any_model_is_asked(two: Lab) -> None:
    versions(two, price=None)
    assert "of $3.00; what 'first' and 'second' may cost is not known" in two.cli("plan", "--max-cost", "3").out
    said = two.cli(*RUN, "--max-cost", "3")
    assert said.code == 2
    assert "no price of 'first' is known, so that the limit of $3.00 of the command could not be kept" in said.err
    assert not Puppet.asked
    assert two.cli(*RUN, "--max-cost", "no").code == 2
