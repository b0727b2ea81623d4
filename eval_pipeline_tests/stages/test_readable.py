"""How much of an evaluation could be read, and from when on that is told."""

import json
from pathlib import Path

import pytest

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.operations.keeping import remarks
from eval_pipeline.providers.base import Call, CallError
from eval_pipeline.stages.checks.readable import Readability, check_readable, readability
from eval_pipeline_tests.support import BROKEN, Answer, Lab, Puppet, case, number

VERSION = {"name": "puppet", "provider": "puppet", "max_recovery_attempts": 0}


def prepare(small: Lab, turns: int = 20, **fields: object) -> Lab:
    small.suite("many", [case(f"m{i:02}", ("50", 50.0)) for i in range(turns)])
    small.versions(VERSION | fields)
    return small


def wrong_on(count: int, what: Answer) -> None:
    def answer(call: Call) -> Answer:
        return what if int(call.case_id[1:]) < count else call.gold.oracle()

    Puppet.answer = staticmethod(answer)


@pytest.mark.parametrize(
    ("unread", "passed", "warning"),
    [(0, True, False), (1, True, False), (2, False, True), (10, False, True), (11, False, False), (20, False, False)],
)
def test_below_95_percent_it_is_a_remark_and_below_50_an_error(
    small: Lab, unread: int, passed: bool, warning: bool
) -> None:
    prepare(small)
    wrong_on(unread, BROKEN)
    small.evaluate("many", upto="turn_metrics")
    inputs = small.inputs("many")
    verdict = check_readable(inputs)
    assert (verdict.passed, verdict.warning) == (passed, warning)
    assert readability(inputs) == Readability(20, 20 - unread, simulated=False)
    assert verdict.facts["share"] == (20 - unread) / 20
    if not passed:
        assert f"only {20 - unread} of 20 answers can be read ({unread} × syntax_error)" in verdict.text
    remarked = [text for text in remarks(inputs) if "can be read" in text]
    assert len(remarked) == warning
    # A response is shown on the terminal, and kept by nobody else.
    assert all("e.g. to many/m00#0" in text for text in remarked)
    assert "to many/" not in verdict.text


@pytest.mark.parametrize("kind", [CallErrorKind.MAX_TOKENS, CallErrorKind.TIMEOUT, CallErrorKind.BAD_RESPONSE])
def test_calls_that_gave_no_answer_count(small: Lab, kind: CallErrorKind) -> None:
    prepare(small)
    wrong_on(12, CallError(kind, "made to fail"))
    small.evaluate("many", upto="turn_metrics")
    verdict = check_readable(small.inputs("many"))
    assert (verdict.passed, verdict.warning) == (False, False)
    assert f"12 × {kind.value}" in verdict.text


def test_what_was_recovered_can_be_read(small: Lab) -> None:
    prepare(small, max_recovery_attempts=1)
    Puppet.answer = staticmethod(lambda call: call.gold.oracle() if call.number else BROKEN)
    small.evaluate("many", upto="turn_metrics")
    assert check_readable(small.inputs("many")).passed


def test_recorded_answers_are_judged_and_turns_without_a_prediction_are_not(small: Lab, tmp_path: Path) -> None:
    prepare(small)
    rows = [{"case_id": f"m{i:02}", "turn_index": 0, "response": number(50) if i else "well"} for i in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = small.cli("import", "predictions", str(tmp_path / "rows.jsonl"), "--suite", "many", "--model-version", "old")
    assert told.code == 0
    small.evaluate("many", "old", upto="turn_metrics")
    assert readability(small.inputs("many", "old")) == Readability(4, 3, simulated=False)


def test_turns_that_the_budget_refused_are_not_judged(small: Lab) -> None:
    prepare(small)
    wrong_on(5, CallError(CallErrorKind.BUDGET, "not asked"))
    small.evaluate("many", upto="turn_metrics")
    assert readability(small.inputs("many")) == Readability(15, 15, simulated=False)


def test_it_is_told_by_the_command_and_in_its_table(small: Lab) -> None:
    prepare(small)
    wrong_on(5, BROKEN)
    said = small.cli("run", "--no-report", "--suite", "many")
    assert said.code == 0
    assert "warning: many, puppet: only 15 of 20 answers can be read" in said.err
    assert "75.0% readable" in said.out
    again = small.cli("run", "--no-report", "--suite", "many")
    assert "warning: many, puppet: only 15 of 20 answers can be read" in again.err
