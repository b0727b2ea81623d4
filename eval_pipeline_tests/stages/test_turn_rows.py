"""Rows of the per-turn tables, on their way into the record too, and how much of an evaluation could be read."""

import json
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eval_pipeline.analysis.baseline import newest_partition
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import CallErrorKind, Partition
from eval_pipeline.operations.upkeep.keeping import remarks
from eval_pipeline.providers.base import Call, CallError
from eval_pipeline.stages.attempts import seen
from eval_pipeline.stages.checks import readable
from eval_pipeline.stages.checks.readable import Readability, check_readable, readability
from eval_pipeline.stages.scoring import superseded
from eval_pipeline.stages.scoring.turn_rows import _numbers, plain_inputs, spent_on
from eval_pipeline.store.tables import STATISTICS, SUPERSEDED_STATISTICS, TURN_RESULTS
from eval_pipeline.workspace.tabled.columns import CollectedColumns, by_name
from eval_pipeline_tests.support import BROKEN, Answer, Lab, Puppet, case, number, response

amounts = st.none() | st.integers(0, 10_000)
attempts = st.fixed_dictionaries(
    {
        "stop_reason": st.none() | st.just("end_turn"),
        **dict.fromkeys(("input_tokens", "output_tokens", "usd", "latency_ms"), amounts),
    }
)


@pytest.mark.parametrize("priced", [True, False])
def test_a_turn_without_an_answer_took_no_tokens_and_no_time_is_known(priced: bool) -> None:
    failed = {"stop_reason": None, "input_tokens": None, "output_tokens": None, "usd": None, "latency_ms": None}
    spent = spent_on([failed, failed], priced=priced)
    assert (spent.tokens, spent.latency_ms, spent.usd) == (0, None, 0.0 if priced else None)


@given(st.lists(attempts, min_size=1, max_size=4))
def test_what_a_turn_took_is_null_as_soon_as_one_answer_does_not_say(rows: list[dict[str, Any]]) -> None:
    answered = [row for row in rows if row["stop_reason"] is not None]
    assume(answered)
    spent = spent_on(rows, priced=True)
    for name in ("input_tokens", "output_tokens", "usd", "latency_ms"):
        said = [row[name] for row in answered]
        assert getattr(spent, name) == (None if None in said else sum(said))
    known = [spent.input_tokens, spent.output_tokens]
    assert spent.tokens == (None if None in known else sum(known))


def test_tokens_that_one_attempt_does_not_tell_are_null_up_to_the_aggregate(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite(cases=[case("one", ("50", 50.0), ("7", 7.0)), case("two", ("7", 7.0))])
    lab.versions({"name": "puppet", "provider": "puppet", "price": {"input": 10, "output": 20}})

    def answer(call: Any) -> Any:
        if call.turn_id == "small/one#0":
            return [response(BROKEN, 100, 10), response(number(50), 40, None)][call.number]
        return response(call.gold.oracle(), 100, 10)

    puppet.answer = staticmethod(answer)
    lab.evaluate(upto="cost_per_correct_answer")
    rows = lab.sql("SELECT input_tokens, output_tokens, tokens, usd IS NULL FROM turn_results ORDER BY turn_id")
    assert rows == [(140, None, None, True), (100, 10, 110, False), (100, 10, 110, False)]
    ((tokens, per_success, reason, usd, usd_reason),) = lab.sql(
        "SELECT tokens_total, tokens_per_success, reason, usd_total, usd_reason FROM cost_per_correct_answer"
    )
    assert (tokens, per_success, usd) == (None, None, None)
    assert reason
    assert usd_reason


def test_error_classes_messages_and_the_first_attempt(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite(cases=[case(name, ("50", 50.0)) for name in ("a_right", "b_wrong", "c_recovered", "d_failed", "e_call")])
    lab.versions({"name": "puppet", "provider": "puppet", "max_recovery_attempts": 1})
    said: dict[str, list[Any]] = {
        "a_right": [number(50)],
        "b_wrong": [number(51)],
        "c_recovered": [BROKEN, number(50)],
        "d_failed": [BROKEN, '{"plan": [{"tool": "compute", "operation": "cube", "args": [2]}]}'],
        "e_call": [CallError(CallErrorKind.TIMEOUT, "gone")],
    }
    puppet.answer = staticmethod(lambda call: said[call.case_id][call.number])
    lab.evaluate(upto="turn_metrics")
    rows = lab.sql(
        "SELECT case_id, outcome, error_class, correct, first_attempt_correct, attempts, answer FROM turn_results "
        "ORDER BY case_id"
    )
    assert rows == [
        ("a_right", "ran", None, True, True, 1, "50"),
        ("b_wrong", "ran", "wrong_answer", False, False, 1, "51"),
        ("c_recovered", "ran", None, True, False, 2, "50"),
        ("d_failed", "failed", "value_error", False, False, 2, None),
        ("e_call", "call_error", "call_error", False, False, 1, None),
    ]
    errors = {row[0]: row[1:] for row in lab.sql("SELECT case_id, error_class, error_message, trace_id FROM errors")}
    assert sorted(errors) == ["b_wrong", "d_failed", "e_call"]
    assert errors["b_wrong"] == ("wrong_answer", "expected 50, got 51", "small/b_wrong#0@puppet")
    assert "cube" in errors["d_failed"][1]
    assert errors["e_call"][1] == "timeout: gone"
    context = json.loads(lab.one("SELECT error_context FROM errors WHERE case_id = 'd_failed'"))
    assert [attempt["number"] for attempt in context["attempted"]] == [0, 1]
    assert context["attempted"][0]["response"] == BROKEN
    assert context["failure_mode"] == "execution_error"
    assert lab.one("SELECT count(*) FROM validation") == 5


def test_every_metric_of_every_turn_is_in_the_long_table_and_agrees_with_the_wide_one(small: Lab) -> None:
    small.evaluate(upto="turn_metrics")
    counts = small.sql("SELECT turn_id, count(*), count(DISTINCT metric) FROM metrics GROUP BY 1 ORDER BY 1")
    assert len(counts) == 3
    assert len({row[1:] for row in counts}) == 1
    assert counts[0][1] == counts[0][2] > 15
    differing = small.one(
        "SELECT count(*) FROM metrics AS m JOIN finqa_turns AS t USING (turn_id, sample) "
        "WHERE m.metric = 'logic_f1' AND m.value IS DISTINCT FROM t.logic_f1"
    )
    assert differing == 0


class Written:
    """Stands for a table's writer."""

    def __init__(self) -> None:
        self.groups: list[dict[str, list[Any]]] = []

    def write(self, columns: dict[str, list[Any]]) -> None:
        self.groups.append({name: list(values) for name, values in columns.items()})


@given(count=st.integers(0, 25), group=st.integers(1, 10))
def test_rows_are_written_in_order_in_groups(count: int, group: int) -> None:
    written = Written()
    rows = CollectedColumns(written, by_name, group)  # type: ignore[arg-type]
    rows.extend({"a": index, "b": str(index)} for index in range(count))
    rows.flush()
    assert [value for found in written.groups for value in found["a"]] == list(range(count))
    assert [value for found in written.groups for value in found["b"]] == [str(index) for index in range(count)]
    assert all(len(found["a"]) == group for found in written.groups[:-1])
    assert all(found["a"] for found in written.groups)


def test_inputs_that_json_cannot_hold_are_shown_as_text() -> None:
    assert json.loads(plain_inputs({"b": Path("x"), "a": 1})) == {"a": 1, "b": "PosixPath('x')"}


def test_the_newest_partition_of_a_model_version(small: Lab) -> None:
    for day in (2, 5, 3):
        small.evaluate(day=date(2026, 3, day), upto="statistics")
    assert newest_partition(small.workspace(), "small", "puppet") == Partition("small", "puppet", date(2026, 3, 5))
    assert newest_partition(small.workspace(), "small", "other") is None


def test_a_stage_says_which_record_it_lacks(small: Lab) -> None:
    with pytest.raises(UsageError, match="the record has no cases of small, puppet, 2026-03-01 yet"):
        small.stage("evidence")


@pytest.mark.parametrize("huge", [1e308, -1e308])
def test_a_number_beyond_all_measure_is_wrong_and_nothing_else(huge: float, lab: Lab, puppet: type[Puppet]) -> None:
    """Its difference from the expected answer does not fit into a float; the rest of the partition is scored."""
    lab.suite(cases=[case("one", ("-0.0052", -0.0052), ("7", 7.0))])
    lab.versions({"name": "puppet", "provider": "puppet"})

    def answer(call: Any) -> Any:
        return response(number(huge) if call.turn_index == 0 else call.gold.oracle(), 10, 10)

    puppet.answer = staticmethod(answer)
    lab.evaluate(upto="turn_metrics")
    assert lab.sql("SELECT turn_index, correct FROM turn_results ORDER BY 1") == [(0, False), (1, True)]
    assert lab.sql("SELECT verdict, value FROM evidence ORDER BY turn_index") == [("different", None), ("equal", 0.0)]


VERSION = {"name": "puppet", "provider": "puppet", "max_recovery_attempts": 0}


def prepare(small: Lab, turns: int = 20, **fields: object) -> Lab:
    small.suite("many", [case(f"m{i:02}", ("50", 50.0)) for i in range(turns)])
    small.versions(VERSION | fields)
    return small


def wrong_on(count: int, what: Answer) -> None:
    def answer(call: Call) -> Answer:
        return what if int(call.case_id[1:]) < count else call.gold.oracle()

    Puppet.answer = staticmethod(answer)


@pytest.mark.parametrize(("unread", "passed", "warning"), [(1, True, False), (10, False, True), (11, False, False)])
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
    assert "5 had a response that could not be read; 5 count as wrong" in said.out
    again = small.cli("run", "--no-report", "--suite", "many")
    assert "warning: many, puppet: only 15 of 20 answers can be read" in again.err


def test_a_metric_that_failed_counts_as_zero_and_texts_are_no_numbers() -> None:
    assert _numbers([0.5, None, None, "label", True], {2}).to_pylist() == [0.5, None, 0.0, None, 1.0]
    assert _numbers([True, None, False], ()).to_pylist() == [1.0, None, 0.0]


@pytest.mark.parametrize(
    ("readable_ones", "passed", "warning"),
    [(100, True, False), (95, True, False), (94, False, True), (50, False, True), (49, False, False)],
)
def test_at_which_share_of_readable_answers_it_warns_and_fails(
    readable_ones: int, passed: bool, warning: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread = seen.seen_error("t", "unreadable", "syntax_error", "no JSON", "well")
    monkeypatch.setattr(readable, "readability", lambda inputs: Readability(100, readable_ones, simulated=False))
    monkeypatch.setattr(seen, "seen_in_rows", lambda *told: [unread])
    inputs: Any = SimpleNamespace(
        read=lambda *what: pa.table({}),
        place=SimpleNamespace(model_version="removed"),
        workspace=SimpleNamespace(model_versions={}),
    )
    verdict = check_readable(inputs)
    assert (verdict.passed, verdict.warning) == (passed, warning)


@pytest.mark.parametrize(
    ("scored", "last", "kept"),
    [("s", None, [2, 3]), ("s", "before", [1, 2, 3]), ("s", "now", None), ("other", None, None)],
)
def test_statistics_that_are_replaced_are_kept_once(
    scored: str, last: str | None, kept: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(superseded, "locked", lambda *told: nullcontext())
    monkeypatch.setattr(superseded, "lock_file", lambda *told: None)
    headers = {
        TURN_RESULTS: SimpleNamespace(content_hash="s", made_from={}),
        STATISTICS: SimpleNamespace(content_hash="now", made_from={TURN_RESULTS.name: scored}, rows=2),
        SUPERSEDED_STATISTICS: last and SimpleNamespace(made_from={"last": last}),
    }
    values = {STATISTICS: [2, 3], SUPERSEDED_STATISTICS: [1]}
    made: list[Any] = []
    inputs: Any = SimpleNamespace(
        header=headers.get,
        read=lambda table: pa.table({column.name: values[table] for column in STATISTICS.columns}),
        record=SimpleNamespace(rewrite=lambda table, key, make: made.append(make())),
        key=lambda table: None,
        workspace=None,
        place=None,
    )
    superseded.keep_superseded(inputs)
    assert made == [] if scored == "other" else len(made) == 1
    if made and kept is None:
        assert made == [None]
    elif made:
        ((told, columns),) = made
        assert told == {"last": "now"}
        assert all(columns[column.name] == kept for column in STATISTICS.columns)
