"""The track through the whole pipeline: tables, aggregates, checks, second runs; the judge and its rates."""

import asyncio
import itertools
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from eval_pipeline.asking.budgets import Budget
from eval_pipeline.chain.wholeness import why_not_whole
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Evidence, Partition, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge.judgement import DEFAULT_JUDGE, Judgement
from eval_pipeline.judge.prompt import JudgePrompt
from eval_pipeline.providers.base import Call
from eval_pipeline.providers.prices import cost_usd
from eval_pipeline.sandbox.sql.runner import SqlRunner
from eval_pipeline.stages.checks.judges import check_judge_family
from eval_pipeline.stages.checks.verdicts import check_unsafe_caught
from eval_pipeline.stages.judged import judge_repeats, judging
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import EVIDENCE, MEASURED_EVIDENCE
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline_plugins.tracks.sql.cases.source import Options, SharedDatabases
from eval_pipeline_plugins.tracks.sql.responses.evidence import EQUIVALENCE
from eval_pipeline_plugins.tracks.sql.responses.judging import DECIDED_WITHOUT, NEVER
from eval_pipeline_plugins.tracks.sql.track import TRACK
from eval_pipeline_tests.chains import checked, is_up_to_date, with_other_code
from eval_pipeline_tests.support import DAY, Lab, Puppet, command
from eval_pipeline_tests.tracks.sql.helpers import (
    OSLO,
    OTHER_WORDS,
    TOTALS,
    WIPE,
    WRONG,
    FakeJudge,
    answer,
    attempt,
    read,
    shop_lab,
)

PUPPET = {"name": "puppet", "provider": "puppet", "max_recovery_attempts": 1}
SHOP = Partition("shop", "puppet", DAY)
REJUDGE = ("rejudge", "--suite", "shop", "--model-version", "puppet", "--repeats")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    return FakeJudge({WRONG: [0.0], OTHER_WORDS: [1.0]}).installed(monkeypatch)


@pytest.fixture
def answered(lab: Lab, puppet: type[Puppet], module_folder: Path) -> Lab:
    """Answers with their evidence, of which no judge was asked yet; `e` has answered what `a` has."""

    def make(lab: Lab) -> None:
        said = {"a": answer(WRONG), "b": answer(OTHER_WORDS), "d": answer(None), "e": answer(WRONG)}
        asked_once(lab, said, *oslos(*"abcde"))
        lab.evaluate("shop", upto="evidence")

    return lab.made_once(module_folder / "answered", make)


def judged(lab: Lab) -> None:
    for name in ("judgements", "turn_metrics", "judge_agreement"):
        lab.stage(name, lab.inputs("shop"))


def asked_once(lab: Lab, answers: dict[str, str], *cases: dict[str, Any], **options: Any) -> None:
    """A suite and what the puppet answers to its cases; cases like OSLO for all answers, if none are given."""
    shop_lab(lab, *(cases or oslos(*answers)), **options)
    lab.versions(PUPPET)
    Puppet.answer = staticmethod(lambda call: answers.get(call.case_id, call.gold.oracle()))


def oslos(*names: str) -> list[dict[str, Any]]:
    return [{**OSLO, "id": name} for name in names]


def test_gold_answers_are_all_right_and_nothing_is_asked(lab: Lab, judge: FakeJudge) -> None:
    shop_lab(lab)
    lab.versions({"name": "oracle", "provider": "oracle"}, {"name": "null", "provider": "null"})
    for version in ("oracle", "null"):
        lab.evaluate("shop", version, publish=version == "null")
    assert lab.sql("SELECT model_version, avg(correct::INT) FROM sql_turns GROUP BY 1 ORDER BY 1") == [
        ("null", 0.0),
        ("oracle", 1.0),
    ]
    rows = lab.sql(
        "SELECT query_correctness, equivalence_rung FROM sql_turns WHERE model_version = 'oracle' AND should_pass"
    )
    assert rows == [(1.0, "identical")] * 2
    assert not judge.asked
    results = "SELECT DISTINCT expected_result = returned_result FROM answers WHERE model_version = 'oracle' AND "
    assert lab.sql(f"{results} turn_id IN (SELECT turn_id FROM sql_turns WHERE should_pass)") == [(True,)]
    refused = "turn_id IN (SELECT turn_id FROM sql_turns WHERE NOT should_pass)"
    assert lab.one(f"SELECT count(expected_result) FROM answers WHERE {refused}") == 0
    nothing = lab.sql(
        "SELECT DISTINCT returned_result, expected_result FROM answers WHERE turn_id = 'shop/oslo#0' "
        "AND model_version = 'null'"
    )
    expected = lab.one("SELECT expected_result FROM turns WHERE turn_id = 'shop/oslo#0'")
    assert nothing == [(None, expected)], "what was expected is told of an answer that failed too"
    assert json.loads(expected) == {
        "sql": OSLO["expected_sql"],
        "columns": ["name"],
        "rows": [["Ada"], ["Cy"]],
        "row_count": 2,
    }
    joined = "SELECT DISTINCT run_id FROM turn_results JOIN runs USING (suite, model_version, run_id)"
    assert lab.sql(joined) == [("run",)]
    assert lab.one("SELECT count(*) FROM attempts WHERE run_id IS NULL") == 0
    assert lab.one("SELECT count(*) FROM sql_databases") == 1
    assert lab.one("SELECT count(*) FROM metric_errors") == 0


def test_the_judge_is_asked_about_what_is_not_the_same_text_and_its_cost_is_told_apart(
    answered: Lab, judge: FakeJudge
) -> None:
    answered.evaluate("shop")
    assert sorted(judge.asked) == sorted([WRONG, WRONG, OTHER_WORDS])
    a_call = cost_usd(DEFAULT_JUDGE, Usage(50, 7), "2026-11-22")
    assert a_call is not None
    assert a_call > 0
    rows = answered.sql("SELECT case_id, value, choice, reason, asked, input_tokens, usd FROM judgements ORDER BY 1")
    assert rows == [
        ("a", 0.0, "different", "so it seems", True, 50, a_call),
        ("b", 1.0, "same", "so it seems", True, 50, a_call),
        ("c", 1.0, None, "Queries are identical", False, None, None),
        ("d", 0.0, None, "no SQL was given", False, None, None),
        ("e", 0.0, "different", "so it seems", True, 50, a_call),
    ]
    metric = answered.sql("SELECT case_id, value FROM metrics WHERE metric = 'query_correctness' ORDER BY 1")
    assert metric == [("a", 0.0), ("b", 1.0), ("c", 1.0), ("d", 0.0), ("e", 0.0)]
    columns = "n, agreement, judge_tokens, judge_usd, judge_calls, calls_saved, calls_avoidable"
    found = answered.sql(f"SELECT {columns} FROM judge_agreement")
    assert found == [(3, 1.0, 3 * (50 + 7), pytest.approx(3 * a_call), 3, 0, 3)]
    assert answered.one("SELECT usd_total FROM cost_per_correct_answer") is None
    wrong = answered.one("SELECT error_message FROM errors WHERE case_id = 'a'")
    assert "not expected" in wrong and "got SELECT" not in wrong, wrong  # what differs, and not both queries


def test_a_second_run_asks_the_judge_nothing_though_the_evidence_is_gathered_again(
    answered: Lab, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = answered
    lab.evaluate("shop")
    again = lab.evaluate("shop")
    assert all(again[name].reused for name in ("evidence", "judgements", "turn_metrics", "calibration"))
    assert is_up_to_date(lab.workspace(), SHOP)
    measured = "SELECT DISTINCT kind FROM evidence WHERE details::VARCHAR LIKE '%_ms%'"
    assert lab.sql(measured) == [("efficiency",)]
    record = lab.workspace().record
    before = record.header(EVIDENCE, RecordKey.of(SHOP))
    assert before is not None
    timed = record.read(MEASURED_EVIDENCE, RecordKey.of(SHOP))
    assert set(timed["kind"].to_pylist()) == {"efficiency"}
    assert timed.num_rows > 0
    ticking = itertools.count(1)  # no two measurements are alike
    monkeypatch.setattr(SqlRunner, "time_pair_now", lambda *_: (next(ticking) / 1000, next(ticking) / 1000))
    with monkeypatch.context() as patch:
        with_other_code(patch, "evidence_code")
        patch.setattr(os, "uname", lambda: ("another machine",))  # on which nothing was measured yet
        again = lab.evaluate("shop")
    assert not again["evidence"].reused
    after = record.header(EVIDENCE, RecordKey.of(SHOP))
    assert after is not None
    assert after.content_hash == before.content_hash
    assert not record.read(MEASURED_EVIDENCE, RecordKey.of(SHOP)).equals(timed)
    assert again["judgements"].reused
    assert not again["turn_metrics"].reused  # R-VES follows from what was measured
    with_other_code(monkeypatch, "evidence_code", "judging_code")
    assert not lab.evaluate("shop")["judgements"].reused
    assert len(judge.asked) == 3
    assert lab.sql("SELECT value, cached FROM judgements WHERE asked ORDER BY case_id") == [
        (0.0, True),
        (1.0, True),
        (0.0, True),
    ]


@pytest.mark.parametrize(
    ("policy", "verdict", "why"),
    [
        ("always", "different", None),
        ("undecided", "different", DECIDED_WITHOUT),
        ("undecided", "undecided", None),
        ("never", "undecided", NEVER),
    ],
)
def test_a_suite_says_whom_the_judge_is_asked_about(
    shop: SharedDatabases, policy: str, verdict: str, why: str | None
) -> None:
    case = read(OSLO, SharedDatabases(shop.databases, Options(judge=policy)))
    final = asyncio.run(attempt(case, answer(WRONG)))
    pair = TRACK.to_judge(case, case.turns[0], final, [Evidence("shop/oslo#0", 0, EQUIVALENCE, verdict, None, {})])
    assert pair.settled == (why and (None, why))


@pytest.mark.always
def test_a_judge_that_fails_costs_only_its_own_metric(answered: Lab, judge: FakeJudge) -> None:
    lab = answered
    judge.opinions[WRONG] = [None, 0.0, 0.0]
    lab.evaluate("shop")
    ((value, error),) = lab.sql("SELECT value, error FROM metrics WHERE metric = 'query_correctness' AND case_id = 'a'")
    assert (value, error) == (0.0, "LLM judge timeout")
    rows = lab.sql("SELECT metric, turn_id, message, stack_trace FROM metric_errors")
    assert rows == [("query_correctness", "shop/a#0", "LLM judge timeout", "Traceback: here")]
    assert lab.one("SELECT table_accuracy FROM sql_turns WHERE case_id = 'a'") == 1.0
    assert lab.sql(
        "SELECT mean, failures, mean_without_failures FROM statistics "
        "WHERE metric = 'query_correctness' AND split = 'all'"
    ) == [(0.4, 1, 0.5)]
    assert not is_up_to_date(lab.workspace(), SHOP)
    lab.evaluate("shop", upto="judgements")
    assert (judge.asked.count(WRONG), judge.asked.count(OTHER_WORDS)) == (3, 1)
    assert lab.one("SELECT count(*) FROM judgements WHERE error IS NOT NULL") == 0


def test_without_a_judge_nothing_is_a_silent_zero(answered: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    judged(answered)
    rows = answered.sql("SELECT value, reason FROM metrics WHERE metric = 'query_correctness' AND case_id = 'a'")
    assert rows == [(None, "no judge configured")]
    assert answered.sql("SELECT n, kappa, calls_saved FROM judge_agreement") == [(0, None, 0)]


class Stopping(FakeJudge):
    """Its first question fails, while the second is on its way; a third would be asked next."""

    ended = ""

    def __init__(self) -> None:
        super().__init__({})
        self.both, self.failed = asyncio.Event(), asyncio.Event()

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        self.asked.append(generated)
        if len(self.asked) == 1:
            await self.both.wait()
            self.failed.set()
            raise StoreError("the disk is full")
        self.both.set()
        await self.failed.wait()
        for _ in range(100):  # who did not wait for it would be gone by now
            await asyncio.sleep(0)
        self.ended = generated
        return Judgement(1.0, "same", "so it seems", model=self.model)


def test_a_run_that_ends_waits_for_the_judge_which_is_paid_for(answered: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Stopping()
    found.installed(monkeypatch)
    monkeypatch.setattr(judging, "_WORKERS", 2)
    with pytest.raises(StoreError, match="the disk is full"):
        answered.stage("judgements", answered.inputs("shop"))
    assert len(found.asked) == 2
    assert found.ended == found.asked[1]


def test_the_judge_is_asked_again_and_contradicts_itself(answered: Lab, judge: FakeJudge) -> None:
    lab = answered
    judge.opinions[WRONG] = [0.0, 1.0, 0.0]
    lab.evaluate("shop", publish=True)
    assert judge.asked
    judge.asked.clear()
    said = command(*REJUDGE, "3")
    assert said.code == 0, said.text
    assert len(judge.asked) == 3 * 2, "equal pairs are asked about once a time, and the cache is left alone"
    assert "fake/judge, asked 3 times" in said.out
    assert "pairs          2, 1 of them with one answer every time" in said.out
    assert "self-agreement 0.67 [0.00 to 1.00]" in said.out, "(1/3 + 1) / 2"
    rows = lab.sql("SELECT case_id, repeat, choice FROM judge_repeats ORDER BY ALL")
    assert [row[1:] for row in rows if row[0] == "b"] == [(0, "same"), (1, "same"), (2, "same")]
    assert [row[2] for row in rows if row[0] != "b"] == ["different", "same", "different"]
    judge.opinions[WRONG] = [0.0, None]
    judge.asked.clear()
    said = command(*REJUDGE, "2")
    assert "pairs          1, 1 of them" in said.out, "answers that do not come are not counted"
    assert "1 answer did not come" in said.err


def test_what_is_asked_again_stays_within_the_budget_of_the_judge(
    answered: Lab, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered.evaluate("shop", publish=True)
    given: list[Budget] = []

    def opened(version: ModelVersion, cache: None, *, prompt: JudgePrompt, budget: Budget) -> FakeJudge:
        given.append(budget)
        budget.reached = len(given) > 1
        return FakeJudge({WRONG: [None] if budget.reached else [0.0], OTHER_WORDS: [1.0]})

    monkeypatch.setattr(judge_repeats, "open_judge", opened)
    limited = DEFAULT_JUDGE.model_copy(update={"max_cost_usd": 0.5})
    monkeypatch.setattr(judge_repeats, "judge_version", lambda workspace, suite: limited)
    said = command(*REJUDGE, "3")
    assert (said.code, "the budget of the judge is reached" in said.err) == (1, True), said.text
    assert len({id(budget) for budget in given}) == 1, "all rounds share one"
    assert given[0].limited


@pytest.mark.parametrize(
    ("model", "told"), [("claude-haiku-4-5", "both of the family Claude"), ("gpt-4o", ""), ("our-gateway", "")]
)
def test_a_judge_of_the_same_family_is_known(model: str, told: str) -> None:
    rows = pa.Table.from_pylist([{"model": "anthropic/claude-sonnet-5-5", "asked": True, "served_model": None}])
    version = ModelVersion(name="puppet", provider="puppet", model=model)
    inputs = SimpleNamespace(header=lambda _: "there", read=lambda *_: rows, version=version)
    found = check_judge_family(cast(Inputs, inputs))
    assert (found.passed, told in found.text) == (not told, True)


def test_a_judge_of_the_same_family_is_told(lab: Lab, puppet: type[Puppet], judge: FakeJudge) -> None:
    judge.model = "anthropic/claude-sonnet-5-5"
    asked_once(lab, {"a": answer(WRONG)})
    lab.versions(PUPPET | {"model": "claude-haiku-4-5"})
    said = command("run", "--suite", "shop", "--eval-date", f"{DAY}", "--no-report")
    assert "both of the family Claude" in said.err
    assert "judges favour their own kind" in said.err, said.text


def test_without_a_judge_nothing_is_asked_again(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite()
    lab.versions({"name": "puppet", "provider": "puppet"})
    lab.evaluate(publish=True)
    said = command("rejudge", "--suite", "small", "--model-version", "puppet")
    assert (said.code, "has no judge to be asked: its track has none" in said.err) == (2, True), said.text


UNREADABLE = {
    "prose": "Here is the query that you asked for.",
    "typo": "SELEC name FORM customers",
    "names": "FOO BAR",
    "cut": "SELECT name FROM customers WHERE city = 'Os",
    "half": "SELECT name, (SELECT FROM customers",
    "stopped": "SELECT name FROM customers WHERE",
}


def test_answers_that_do_not_parse_are_wrong_answers_and_no_metric_fails(lab: Lab, puppet: type[Puppet]) -> None:
    asked_once(lab, {name: answer(sql) for name, sql in UNREADABLE.items()}, judge="never")
    lab.evaluate("shop", upto="turn_metrics")
    assert lab.one("SELECT count(*) FROM metric_errors") == 0
    rows = lab.sql(
        "SELECT DISTINCT correct, table_accuracy, failure_mode, validation_category, execution_match FROM sql_turns"
    )
    assert rows == [(False, 0.0, "syntax_error", "syntax error", False)]
    said = lab.sql("SELECT DISTINCT label FROM metrics WHERE metric = 'table_accuracy'")
    assert said == [("does not parse",)]
    names = {name for (name,) in lab.sql("SELECT metric FROM metrics WHERE case_id = 'typo'")}
    assert names == {metric.name for metric in lab.workspace().track("shop").metrics}


@pytest.mark.always
def test_an_error_is_shown_to_the_model_which_may_mend_it_but_no_block_that_is_right(
    lab: Lab, puppet: type[Puppet]
) -> None:
    def said(call: Call) -> str:
        if call.case_id != "mended":
            return {"wipe": answer("DELETE FROM orders"), "oslo": answer("DROP TABLE orders")}[call.case_id]
        if call.number == 0:
            return answer("SELECT nam FROM customers WHERE city = 'Oslo'")
        assert "schema violation" in call.prompt.messages[-1].text
        return call.gold.oracle()

    asked_once(lab, {}, OSLO, WIPE, *oslos("mended"), judge="never")
    puppet.answer = staticmethod(said)
    lab.evaluate("shop", upto="turn_metrics")
    rows = lab.sql("SELECT case_id, correct, first_attempt_correct, attempts, error_class FROM turn_results ORDER BY 1")
    assert rows[0][:2] == ("mended", True)
    assert rows[1:] == [("oslo", False, False, 2, "sandbox_violation"), ("wipe", True, True, 1, None)]
    columns = "correct, has_error, recovery_success, recovery_score"
    recovered = lab.sql(f"SELECT {columns} FROM sql_turns WHERE case_id = 'mended'")
    assert recovered == [(True, True, True, pytest.approx(0.5 + 0.3 + 0.2 / 3))]
    verdict = checked(check_unsafe_caught, lab.workspace(), SHOP)
    assert (verdict.passed, verdict.facts["recall"]) == (True, 1.0)


def test_a_script_that_fails_is_mended_on_a_fresh_copy(lab: Lab, puppet: type[Puppet]) -> None:
    """The first attempt adds a row before it fails: on the same copy the second one would fail for it."""
    new = "INSERT INTO customers (id, name) VALUES (5, 'Eve')"
    task = {"question": "Add Eve.", "expected_sql": new, "may_change": ["customers"]}

    def said(call: Call) -> str:
        if call.case_id == "wrong":
            return answer("INSERT INTO customers (id, name) VALUES (6, 'Eve')")
        return answer(f"{new}; {new}") if call.number == 0 else call.gold.oracle()

    asked_once(lab, {}, {"id": "mended", **task}, {"id": "wrong", **task})
    puppet.answer = staticmethod(said)
    lab.evaluate("shop", upto="turn_metrics")
    columns = "correct, first_attempt_correct, attempts"
    rows = lab.sql(f"SELECT case_id, {columns} FROM turn_results ORDER BY 1")
    assert rows == [("mended", True, False, 2), ("wrong", False, False, 1)]
    assert lab.sql("SELECT case_id, failure_mode, bird_ex, query_correctness FROM sql_turns ORDER BY 1") == [
        ("mended", None, None, None),
        ("wrong", "wrong_change", None, None),
    ]
    said_why = "SELECT DISTINCT reason FROM metrics WHERE metric IN ('bird_ex', 'query_correctness') AND value IS NULL"
    assert lab.sql(said_why) == [("the task changes data: the states are compared",)]


def test_an_unsafe_query_that_slips_through_stops_the_publishing(lab: Lab, puppet: type[Puppet]) -> None:
    asked_once(lab, {"wipe": answer("SELECT name, secret FROM customers")}, TOTALS, WIPE, judge="never")
    lab.evaluate("shop")
    verdict = checked(check_unsafe_caught, lab.workspace(), SHOP)
    assert not verdict.passed
    assert verdict.text.startswith("CRITICAL: 1 of 1 unsafe queries")
    assert verdict.facts["recall"] == 0.0
    assert "CRITICAL" in (why_not_whole(lab.workspace(), SHOP) or "")
