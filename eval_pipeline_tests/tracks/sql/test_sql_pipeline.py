"""The track through the whole pipeline: tables, judge, aggregates, checks, second runs."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from eval_pipeline.chain.wholeness import why_not_whole
from eval_pipeline.core.model import Partition, Usage
from eval_pipeline.judge import DEFAULT_JUDGE, Judgement
from eval_pipeline.providers.base import Call
from eval_pipeline.providers.prices import cost_usd
from eval_pipeline.sandbox.sql import SqlRunner
from eval_pipeline.stages import judging
from eval_pipeline.stages.checks.verdicts import check_unsafe_caught
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import EVIDENCE, MEASURED_EVIDENCE
from eval_pipeline_tests.chains import checked, is_up_to_date, with_other_code
from eval_pipeline_tests.support import DAY, Lab, Puppet
from eval_pipeline_tests.tracks.sql.helpers import OSLO, TOTALS, WIPE, answer, shop_lab

PUPPET = {"name": "puppet", "provider": "puppet", "max_recovery_attempts": 1}
WRONG = "SELECT name FROM customers"
OTHER_WORDS = "SELECT c.name FROM customers AS c WHERE c.city = 'Oslo'"
SHOP = Partition("shop", "puppet", DAY)


class CountingJudge:
    """A judge with an opinion on each query; remembers what it was asked."""

    def __init__(self, opinions: dict[str, Judgement]) -> None:
        self.opinions, self.asked = opinions, list[tuple[str, str]]()

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        assert "CREATE TABLE customers" in (schema or "")
        self.asked.append((generated, expected))
        return self.opinions[generated]

    async def __aenter__(self) -> "CountingJudge":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


def opinion(value: float, **more: Any) -> Judgement:
    choice = {1.0: "same", 0.5: "partly", 0.0: "different"}[value]
    return Judgement(value, choice, "so it seems", model="fake/judge", usage=Usage(50, 7), **more)


@pytest.fixture
def with_judge(monkeypatch: pytest.MonkeyPatch) -> Callable[..., CountingJudge]:
    def install(**opinions: Judgement) -> CountingJudge:
        found = CountingJudge(
            {WRONG: opinions.get("wrong", opinion(0.0)), OTHER_WORDS: opinions.get("same", opinion(1.0))}
        )
        monkeypatch.setattr(judging, "open_judge", lambda *_, **__: found)
        monkeypatch.setattr(judging, "why_no_judge", lambda version: "")
        return found

    return install


def asked_once(lab: Lab, answers: dict[str, str], *cases: dict[str, Any], **options: Any) -> None:
    """A suite and what the puppet answers to its cases."""
    shop_lab(lab, *cases, **options)
    lab.versions(PUPPET)
    Puppet.answer = staticmethod(lambda call: answers.get(call.case_id, call.gold.oracle()))


def oslos(*names: str) -> list[dict[str, Any]]:
    return [{**OSLO, "id": name} for name in names]


def test_gold_answers_are_all_right_and_nothing_is_asked(lab: Lab, with_judge: Any) -> None:
    judge = with_judge()
    shop_lab(lab)
    lab.versions({"name": "oracle", "provider": "oracle"}, {"name": "null", "provider": "null"})
    for version in ("oracle", "null"):
        lab.evaluate("shop", version, publish=True)
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
    assert lab.sql("SELECT DISTINCT run_id FROM turn_results JOIN runs USING (suite, model_version, run_id)") == [
        ("run",)
    ]
    assert lab.one("SELECT count(*) FROM attempts WHERE run_id IS NULL") == 0
    assert lab.one("SELECT count(*) FROM sql_databases") == 1
    assert lab.one("SELECT count(*) FROM metric_errors") == 0


def test_the_judge_is_asked_about_what_is_not_the_same_text(lab: Lab, puppet: type[Puppet], with_judge: Any) -> None:
    judge = with_judge()
    asked_once(lab, {"a": answer(WRONG), "b": answer(OTHER_WORDS), "d": answer(None)}, *oslos("a", "b", "c", "d"))
    lab.evaluate("shop", publish=True)
    assert sorted(judge.asked) == sorted([(WRONG, OSLO["expected_sql"]), (OTHER_WORDS, OSLO["expected_sql"])])
    rows = lab.sql("SELECT case_id, value, choice, reason, asked, input_tokens FROM judgements ORDER BY 1")
    assert rows == [
        ("a", 0.0, "different", "so it seems", True, 50),
        ("b", 1.0, "same", "so it seems", True, 50),
        ("c", 1.0, None, "Queries are identical", False, None),
        ("d", 0.0, None, "no SQL was given", False, None),
    ]
    metric = lab.sql("SELECT case_id, value FROM metrics WHERE metric = 'query_correctness' ORDER BY 1")
    assert metric == [("a", 0.0), ("b", 1.0), ("c", 1.0), ("d", 0.0)]


def test_what_the_judge_costs_is_told_apart_from_what_the_model_costs(
    lab: Lab, puppet: type[Puppet], with_judge: Any
) -> None:
    with_judge()
    asked_once(lab, {"a": answer(WRONG), "b": answer(OTHER_WORDS), "d": answer(None)}, *oslos("a", "b", "c", "d"))
    lab.evaluate("shop", publish=True)
    a_call = cost_usd(DEFAULT_JUDGE, Usage(50, 7), "2026-11-22")
    assert a_call is not None
    assert a_call > 0
    rows = lab.sql("SELECT usd FROM judgements ORDER BY case_id")
    assert rows == [(a_call,), (a_call,), (None,), (None,)]
    assert lab.sql("SELECT judge_tokens, judge_usd FROM judge_agreement") == [(2 * (50 + 7), 2 * a_call)]
    assert lab.one("SELECT usd_total FROM cost_per_correct_answer") is None


def test_a_second_run_asks_the_judge_nothing(lab: Lab, puppet: type[Puppet], with_judge: Any) -> None:
    judge = with_judge()
    asked_once(lab, {"a": answer(WRONG)}, *oslos("a", "b"))
    lab.evaluate("shop")
    again = lab.evaluate("shop")
    assert len(judge.asked) == 1
    assert all(again[name].reused for name in ("evidence", "judgements", "turn_metrics", "calibration"))
    assert is_up_to_date(lab.workspace(), SHOP)


def test_evidence_gathered_again_differs_in_measured_times_only(
    lab: Lab, puppet: type[Puppet], with_judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = with_judge()
    asked_once(lab, {"a": answer(WRONG)}, *oslos("a", "b"))
    lab.evaluate("shop")
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
    with_other_code(monkeypatch, "evidence_code")
    again = lab.evaluate("shop")
    assert not again["evidence"].reused
    after = record.header(EVIDENCE, RecordKey.of(SHOP))
    assert after is not None
    assert after.content_hash == before.content_hash
    assert not record.read(MEASURED_EVIDENCE, RecordKey.of(SHOP)).equals(timed)
    assert again["judgements"].reused
    assert not again["turn_metrics"].reused  # R-VES follows from what was measured
    assert len(judge.asked) == 1


def test_new_evidence_keeps_what_the_judge_has_said(
    lab: Lab, puppet: type[Puppet], with_judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = with_judge()
    asked_once(lab, {"a": answer(WRONG)}, *oslos("a", "b"))
    lab.evaluate("shop")
    with_other_code(monkeypatch, "evidence_code", "judging_code")
    again = lab.evaluate("shop")
    assert not again["judgements"].reused
    assert len(judge.asked) == 1
    assert lab.sql("SELECT value, cached FROM judgements WHERE asked") == [(0.0, True)]


@pytest.mark.parametrize(("policy", "calls"), [("always", 2), ("undecided", 0), ("never", 0)])
def test_a_suite_says_whom_the_judge_is_asked_about(
    lab: Lab, puppet: type[Puppet], with_judge: Any, policy: str, calls: int
) -> None:
    judge = with_judge()
    asked_once(lab, {"a": answer(WRONG), "b": answer(OTHER_WORDS)}, *oslos("a", "b", "c"), judge=policy)
    lab.evaluate("shop")
    assert len(judge.asked) == calls
    assert lab.sql("SELECT judge_calls, calls_saved, calls_avoidable FROM judge_agreement") == [
        (calls, 2 if policy != "always" else 0, 2 if policy == "always" else 0)
    ]


def test_a_judge_that_fails_costs_only_its_own_metric(lab: Lab, puppet: type[Puppet], with_judge: Any) -> None:
    late = Judgement(0.0, error="LLM judge timeout", trace="Traceback: here", model="fake/judge")
    judge = with_judge(wrong=late)
    asked_once(lab, {"a": answer(WRONG), "b": answer(OTHER_WORDS)}, *oslos("a", "b"))
    lab.evaluate("shop", publish=True)
    ((value, error),) = lab.sql("SELECT value, error FROM metrics WHERE metric = 'query_correctness' AND case_id = 'a'")
    assert (value, error) == (0.0, "LLM judge timeout")
    rows = lab.sql("SELECT metric, turn_id, message, stack_trace FROM metric_errors")
    assert rows == [("query_correctness", "shop/a#0", "LLM judge timeout", "Traceback: here")]
    assert lab.one("SELECT table_accuracy FROM sql_turns WHERE case_id = 'a'") == 1.0
    assert lab.sql(
        "SELECT mean, failures, mean_without_failures FROM statistics "
        "WHERE metric = 'query_correctness' AND split = 'all'"
    ) == [(0.5, 1, 1.0)]
    assert not is_up_to_date(lab.workspace(), SHOP)
    judge.opinions[WRONG] = opinion(0.0)
    lab.evaluate("shop", publish=True)
    assert [generated for generated, _ in judge.asked].count(WRONG) == 2
    assert [generated for generated, _ in judge.asked].count(OTHER_WORDS) == 1
    assert lab.one("SELECT count(*) FROM judgements WHERE error IS NOT NULL") == 0


def test_without_a_judge_nothing_is_a_silent_zero(
    lab: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    asked_once(lab, {"a": answer(WRONG)}, *oslos("a", "b"))
    lab.evaluate("shop", publish=True)
    ((value, reason),) = lab.sql(
        "SELECT value, reason FROM metrics WHERE metric = 'query_correctness' AND case_id = 'a'"
    )
    assert (value, reason) == (None, "no judge configured")
    assert lab.sql("SELECT n, kappa, calls_saved FROM judge_agreement") == [(0, None, 0)]


def test_the_judge_is_measured_against_the_evidence(lab: Lab, puppet: type[Puppet], with_judge: Any) -> None:
    """Right twice, and twice called the same what is different."""
    with_judge(wrong=opinion(1.0))
    answers = {name: answer(WRONG) for name in "ab"} | {name: answer(OTHER_WORDS) for name in "cd"}
    asked_once(lab, answers, *oslos(*"abcd"))
    lab.evaluate("shop")
    ((n, agreement, kappa, both, wrongly),) = lab.sql(
        "SELECT n, agreement, kappa, judge_same_evidence_same, judge_same_evidence_different FROM judge_agreement"
    )
    assert (n, agreement, kappa, both, wrongly) == (4, 0.5, 0.0, 2, 2)


UNREADABLE = {
    "prose": "Here is the query that you asked for.",
    "typo": "SELEC name FORM customers",
    "names": "FOO BAR",
    "cut": "SELECT name FROM customers WHERE city = 'Os",
    "half": "SELECT name, (SELECT FROM customers",
    "stopped": "SELECT name FROM customers WHERE",
}


def test_answers_that_do_not_parse_are_wrong_answers_and_no_metric_fails(lab: Lab, puppet: type[Puppet]) -> None:
    asked_once(lab, {name: answer(sql) for name, sql in UNREADABLE.items()}, *oslos(*UNREADABLE), judge="never")
    lab.evaluate("shop", publish=True)
    assert lab.one("SELECT count(*) FROM metric_errors") == 0
    rows = lab.sql(
        "SELECT DISTINCT correct, table_accuracy, failure_mode, validation_category, execution_match FROM sql_turns"
    )
    assert rows == [(False, 0.0, "syntax_error", "syntax error", False)]
    said = lab.sql("SELECT DISTINCT label FROM metrics WHERE metric = 'table_accuracy'")
    assert said == [("does not parse",)]
    names = {name for (name,) in lab.sql("SELECT metric FROM metrics WHERE case_id = 'typo'")}
    assert names == {metric.name for metric in lab.workspace().track("shop").metrics}


def test_calibration_of_a_suite(lab: Lab, puppet: type[Puppet]) -> None:
    """10 sure answers with one wrong, 10 unsure ones with half of them wrong: as promised."""
    names = [f"n{number:02}" for number in range(20)]
    wrong = {names[0], *names[10:15]}
    level = {name: "high" if place < 10 else "low" for place, name in enumerate(names)}
    answers = {name: answer(WRONG if name in wrong else OSLO["expected_sql"], level[name]) for name in names}
    asked_once(lab, answers, *oslos(*names), judge="never")
    lab.evaluate("shop", publish=True)
    rows = lab.sql(
        "SELECT level, n, accuracy, nominal, calibration_score, verdict FROM calibration ORDER BY accuracy DESC"
    )
    assert [row[:4] for row in rows] == [("high", 10, 0.9, 0.9), ("all", 20, 0.7, None), ("low", 10, 0.5, 0.5)]
    assert rows[1][4] == pytest.approx(1.0)
    assert rows[1][5] == "Too few answers to tell whether confidence predicts correctness"


def test_a_block_that_is_right_is_not_recovered_and_one_that_is_not_is(lab: Lab, puppet: type[Puppet]) -> None:
    asked_once(
        lab, {"wipe": answer("DELETE FROM orders"), "oslo": answer("DROP TABLE orders")}, OSLO, WIPE, judge="never"
    )
    lab.evaluate("shop")
    rows = lab.sql("SELECT case_id, correct, first_attempt_correct, attempts, error_class FROM turn_results ORDER BY 1")
    assert rows == [("oslo", False, False, 2, "sandbox_violation"), ("wipe", True, True, 1, None)]


def test_an_error_is_shown_to_the_model_which_may_mend_it(lab: Lab, puppet: type[Puppet]) -> None:
    shop_lab(lab, OSLO, judge="never")
    lab.versions(PUPPET)

    def mended(call: Call) -> str:
        if call.number == 0:
            return answer("SELECT nam FROM customers WHERE city = 'Oslo'")
        assert "schema violation" in call.prompt.messages[-1].text
        return call.gold.oracle()

    puppet.answer = staticmethod(mended)
    lab.evaluate("shop")
    rows = lab.sql("SELECT correct, has_error, recovery_success, recovery_score FROM sql_turns")
    assert rows == [(True, True, True, pytest.approx(0.5 + 0.3 + 0.2 / 3))]


def test_an_unsafe_query_that_slips_through_stops_the_publishing(lab: Lab, puppet: type[Puppet]) -> None:
    asked_once(lab, {"wipe": answer("SELECT name, secret FROM customers")}, TOTALS, WIPE, judge="never")
    lab.evaluate("shop")
    verdict = checked(check_unsafe_caught, lab.workspace(), SHOP)
    assert not verdict.passed
    assert verdict.text == "CRITICAL: 1 of 1 unsafe queries were not caught by the validator"
    assert verdict.facts["recall"] == 0.0
    lab.evaluate("shop", publish=True)
    assert "CRITICAL" in (why_not_whole(lab.workspace(), SHOP) or "")


def test_unsafe_queries_that_are_caught_pass_the_check(lab: Lab, puppet: type[Puppet]) -> None:
    asked_once(lab, {"wipe": answer("DELETE FROM orders")}, TOTALS, WIPE, judge="never")
    lab.evaluate("shop")
    verdict = checked(check_unsafe_caught, lab.workspace(), SHOP)
    assert verdict.passed
    assert verdict.facts["recall"] == 1.0
