"""What `plan` tells: tokens as the provider counts them, bounds, caches, open batches."""

from dataclasses import replace
from datetime import timedelta
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from eval_pipeline.cli.evaluating.planned import plan_lines, plan_table, remark_lines
from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.errors import Problem
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs import cost_limits, planning, token_counts
from eval_pipeline.operations.runs.planning import Bound, RunPlan, plan
from eval_pipeline.stages.attempts import model_calls
from eval_pipeline.stages.attempts.units import plan_units, turn_by_turn
from eval_pipeline.suites.cases import read_cases, read_suite
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline_tests.fakes.anthropic_faults import COUNT_TOKENS, RATE_LIMITED, Asked, Fault
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.fakes.application_server import ApplicationServer
from eval_pipeline_tests.remote import PACE, TURNS, VERSION, answers, prepare
from eval_pipeline_tests.support import DAY, Lab, case

PARTITION = Partition("small", VERSION, DAY)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def make_plan(lab: Lab) -> RunPlan:
    return plan(lab.workspace(), PARTITION, Scope())


def asked(lab: Lab, number: str) -> tuple[int, int, float]:
    """Input tokens, output tokens and dollars of the attempts with that number."""
    (row,) = lab.sql(f"SELECT sum(input_tokens), sum(output_tokens), sum(usd) FROM attempts WHERE number {number}")
    return row


def test_input_tokens_are_those_that_the_run_is_charged_for_and_no_bound_is_exceeded(lab: Lab) -> None:
    with AnthropicServer(answers) as server:
        prepare(lab, server)
        found = make_plan(lab)
        assert not server.requests()
        assert len(server.requests(COUNT_TOKENS)) == 48
        lab.evaluate("small", VERSION, upto="recovery_attempts")
    assert (found.turns, found.journalled, found.generations.calls, found.how) == (48, 0, 48, "counted")
    tokens_in, tokens_out, usd = asked(lab, "= 0")
    assert found.generations.input_tokens == pytest.approx(tokens_in, rel=0.02)
    assert tokens_out <= found.generations.output_tokens == 48 * 200
    assert found.generations.usd is not None and usd <= found.generations.usd
    tokens_in, tokens_out, usd = asked(lab, "> 0")
    assert tokens_in > 0
    assert found.recovery.calls == 96
    assert tokens_in <= found.recovery.input_tokens
    assert tokens_out <= found.recovery.output_tokens == 96 * 200
    assert found.recovery.usd is not None and usd <= found.recovery.usd


def test_of_many_prompts_a_sample_is_counted(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_counts, "COUNTED_ALL", 10)
    with AnthropicServer(answers) as server:
        prepare(lab, server)
        found = make_plan(lab)
        assert len(server.requests(COUNT_TOKENS)) == 10
        lab.evaluate("small", VERSION, upto="recovery_attempts")
    assert found.how == "sampled"
    assert found.generations.input_tokens == pytest.approx(asked(lab, "= 0")[0], rel=0.02)


def test_prompts_that_samples_share_are_counted_once(lab: Lab) -> None:
    with AnthropicServer(answers) as server:
        prepare(lab, server, conversations=2, samples_per_turn=3)
        found = make_plan(lab)
        assert len(server.requests(COUNT_TOKENS)) == 8
    assert found.turns == 24


def test_without_a_key_tokens_are_estimated(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with AnthropicServer(answers) as server:
        prepare(lab, server)
        counted = make_plan(lab)
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        found = make_plan(lab)
    assert (found.how, found.why) == (
        "estimated",
        "model version 'claude': the environment variable ANTHROPIC_API_KEY is not set",
    )
    assert found.generations.input_tokens == pytest.approx(counted.generations.input_tokens, rel=0.25)


def test_that_the_key_is_refused_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-wrong-0000")
    with AnthropicServer(answers) as server:
        said = prepare(lab, server).cli("plan", "--eval-date", DAY.isoformat())
    assert "tokens, estimated from the length" in said.out
    assert "not counted: the API refuses the key in ANTHROPIC_API_KEY (HTTP 401" in said.out
    assert "wrong-0000" not in said.out


def test_what_was_counted_before_the_api_had_enough_is_a_sample(lab: Lab) -> None:
    def enough(asked: Asked) -> Fault | None:
        return RATE_LIMITED if asked.operation == COUNT_TOKENS and asked.number >= 20 else None

    with AnthropicServer(answers, faults=enough) as server:
        prepare(lab, server)
        found = make_plan(lab)
        lab.evaluate("small", VERSION, upto="recovery_attempts")
    assert found.how == "sampled"
    assert "HTTP 429" in found.why
    assert found.generations.input_tokens == pytest.approx(asked(lab, "= 0")[0], rel=0.02)


@pytest.mark.always
def test_of_an_application_nothing_is_known_but_what_it_told(lab: Lab) -> None:
    with ApplicationServer() as server:
        lab.suite(cases=[case("c0", *TURNS), case("c1", *TURNS)])
        options = {"base_url": server.url, "path": "/ask", "answer_path": "$.result.calculation"}
        options |= {"answer_field": "calculation", "cost_path": "$.cost_usd"}
        options |= {"input_tokens_path": "$.usage.input", "output_tokens_path": "$.usage.output"}
        lab.versions({"name": VERSION, "provider": "http", "options": options, "max_cost_usd": 1})
        before = lab.cli("plan", "--eval-date", DAY.isoformat()).out
        assert not server.asked
        lab.evaluate("small", VERSION, scope=Scope(cases=("c0",)), upto="recovery_attempts")
        found = make_plan(lab)
        after = lab.cli("plan", "--eval-date", DAY.isoformat()).out
    assert "expected  unknown: the application makes its own prompt" in before
    assert "recovery  at most 16 calls more\n" in before
    tokens_in, tokens_out, usd = asked(lab, "= 0")
    assert (found.turns, found.journalled, found.how, found.answers) == (8, 4, "told", 4)
    assert (found.generations.calls, found.recovery.calls) == (4, 8)
    assert found.generations.input_tokens == tokens_in
    assert found.generations.output_tokens == tokens_out
    assert found.generations.usd == pytest.approx(usd)
    assert found.recovery.usd == pytest.approx(2 * usd)
    line = f"expected  {tokens_in:,} tokens in, {tokens_out:,} tokens out, ${usd:,.4f}, going by 4 answers on record"
    assert line in after


def test_what_the_journal_has_costs_nothing(lab: Lab) -> None:
    with AnthropicServer(answers) as server:
        prepare(lab, server)
        lab.evaluate("small", VERSION, upto="generations")
        halfway = make_plan(lab)
        lab.evaluate("small", VERSION, upto="recovery_attempts")
        found = make_plan(lab)
        another_date = plan(lab.workspace(), Partition("small", VERSION, DAY + timedelta(days=1)), Scope())
        anew = plan(lab.workspace(), PARTITION, Scope(), epoch="tonight")
    assert (halfway.generations.calls, halfway.recovery.calls) == (0, 96), "its answers may have to be asked again"
    assert (found.journalled, found.generations.calls, found.generations.input_tokens) == (48, 0, 0)
    for known in (found, another_date):
        assert (known.generations.usd, known.calls, known.known_usd, known.is_priced) == (0, 0, 0, True)
    assert (anew.generations.calls, anew.recovery.calls) == (48, 96)


@pytest.mark.always
def test_the_share_that_a_cache_can_answer_is_what_earlier_calls_have_sent(lab: Lab) -> None:
    with AnthropicServer(answers) as server:
        prepare(lab, server)
        several = make_plan(lab)
        prepare(lab, server, samples_per_turn=5)
        more = make_plan(lab)
    assert 0 < several.cacheable < more.cacheable < 1
    # Of four turns that begin alike three find it, of twenty nineteen.
    assert more.cacheable / several.cacheable == pytest.approx((19 / 20) / (3 / 4), rel=0.05)


def of_plan(suite: str, name: str, **told: Any) -> RunPlan:
    made = {"turns": 3, "journalled": 1, "in_batches": 0, "open_batches": 0, "how": "counted", "cacheable": 0.0}
    nothing = Bound(0, 0, 0, 0.0)
    return RunPlan(suite, name, **{**made, "generations": Bound(2, 9, 9, 0.5), "recovery": nothing, **told})


def test_several_plans_are_one_table_with_a_total_that_says_what_is_not_known() -> None:
    plans = [
        of_plan("b", "paid", recovery=Bound(4, 9, 9, 1.0), judge=Bound(3, 9, 9, 2.0)),
        of_plan("b", "free", generations=Bound(2, 9, 9, 0.0)),
        of_plan("a", "paid", notes=("read as CSV",)),
    ]
    assert printed(plan_table(plans))[2:] == [
        ["a", "paid", "3", "1", "2", "2", "$0.5000"],
        ["b", "paid", "3", "1", "2", "9", "$3.50"],
        ["free", "3", "1", "2", "2", "$0.00"],
        ["in", "all", "9", "3", "6", "13", "$4.00"],
    ]
    assert list(remark_lines(plans)) == ["a: read as CSV", "details: --suite and --model-version of one"]
    agent = of_plan("c", "agent", how="unknown", generations=Bound(80, None, None, None), attempts=2)
    assert printed(plan_table([agent]))[2] == ["c", "agent", "3", "1", "2", "80", "unknown"]
    known = replace(agent, calls_each=3.5, budget=2.0)
    told = {one: [line for line in plan_lines(one) if line.startswith("  calls")] for one in (agent, known)}
    assert "not known before" in told[agent][0] and "at most 80 by" in told[agent][0]
    assert "about 7, going by 3.5" in told[known][0] and "at most 80 by" in told[known][0] and "$2.00" in told[known][0]
    plans[2] = replace(plans[2], generations=Bound(2, 9, 9, None))
    assert printed(plan_table(plans))[2][-1:] == ["unknown"]
    assert printed(plan_table(plans))[-1][-3:] == ["$3.50", "+", "unknown"]


def printed(table: Table) -> list[list[str]]:
    """The words of each line of a table, without rules, as in a terminal of 100 columns."""
    console = Console(width=100, file=StringIO())
    with console.capture() as said:
        console.print(table)
    return [line.split() for line in said.get().splitlines() if line.strip(" ─")]


def test_batches_are_half_the_price(lab: Lab) -> None:
    with AnthropicServer(answers) as server:
        single = make_plan(prepare(lab, server)).generations.usd
        found = make_plan(prepare(lab, server, batch=True)).generations.usd
    assert single is not None
    assert found == pytest.approx(single / 2)


def test_batches_that_are_open_are_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_calls, "PACE", replace(PACE, deadline_s=0.3))
    with AnthropicServer(answers, batch_polls=10**6) as server:
        prepare(lab, server, conversations=2, batch=True).evaluate("small", VERSION)
        prepare(lab, server, conversations=3, batch=True)
        found = make_plan(lab)
        said = lab.cli("plan", "--eval-date", DAY.isoformat())
    assert (found.open_batches, found.in_batches, found.generations.calls) == (1, 8, 4)
    assert "batches   handed in before and open: 1; 8 turns wait for them" in said.out
    assert "recovery  at most 24 calls more" in said.out


def test_turns_of_a_conversation_are_not_asked_at_once(lab: Lab) -> None:
    cases = [case(f"c{number}", *TURNS[: 2 + number % 2]) for number in range(7)]
    lab.suite(cases=cases)
    lab.versions({"name": "claude", "provider": "null"})
    version = lab.workspace().model_version("claude")
    units = list(plan_units(read_cases(lab.workspace().suite("small")), version))
    order = [(place, unit.case.id, unit.turns[0].index) for place, unit in turn_by_turn(units, 7, 3)]
    assert sorted(place for place, *_ in order) == list(range(len(units)))
    assert all(units[place].case.id == name for place, name, _ in order)
    first, second = ["c0", "c1", "c2"], ["c3", "c4", "c5", "c6"]  # no window is smaller than asked for
    expected = [(name, index) for index in (0, 1) for name in first] + [("c1", 2)]
    expected += [(name, index) for index in (0, 1) for name in second] + [("c3", 2), ("c5", 2)]
    assert [found[1:] for found in order] == expected
    assert [place for place, _ in turn_by_turn(units[:2], 1, 10)] == [0, 1]
    assert list(turn_by_turn([], 0, 3)) == []


def test_a_plan_tells_how_tables_were_read_and_that_cases_are_left_out(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lab.suite("small", (), track="text", options={"answer": {"form": "text"}})
    (folder / "suite.yaml").write_text((folder / "suite.yaml").read_text().replace("cases/*.yaml", "cases.csv"))
    (folder / "cases.csv").write_text("id;question;answer\n1;q;x\n")
    lab.versions({"name": "oracle", "provider": "oracle"})
    read = replace(
        read_suite(lab.workspace().suite("small")), problems=(Problem("small/a.yaml", 3, "id", "is missing"),)
    )
    monkeypatch.setattr(planning, "read_suite", lambda source: read)
    found = plan(lab.workspace(), Partition("small", "oracle", DAY), Scope())
    assert found.notes[0] == "small/cases.csv: read as CSV in UTF-8 with ';' between cells"
    assert found.notes[1].endswith("the first of 1 problem: small/a.yaml:3: id: is missing")
    assert [line for line in plan_lines(found) if "files" in line] == [f"  files     {note}" for note in found.notes]


@pytest.mark.parametrize(
    ("costs", "unknown", "most", "told"),
    [
        ((2.0, 1.0), (), "$3.00", ""),
        ((2.0, 9.0), (), "$5.00", "$11.00"),
        ((2.0, None), ("v",), "$5.00", "'v'"),
        ((None,), ("v", "judge", "v"), "$5.00", "'v' and 'judge'"),
    ],
)
def test_what_plans_may_spend_of_a_limit(
    costs: tuple[float | None, ...], unknown: tuple[str, ...], most: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost_limits, "_unpriced", lambda workspace, found: unknown if found.recovery is None else ())
    plans: list[Any] = [
        SimpleNamespace(generations=SimpleNamespace(usd=usd), recovery=None, judge=None) for usd in costs[:1]
    ] + [SimpleNamespace(generations=None, recovery=SimpleNamespace(usd=usd), judge=None) for usd in costs[1:]]
    text = cost_limits.limit_text(SimpleNamespace(), plans, CostLimit("command x", 5.0))  # type: ignore[arg-type]
    assert text.startswith(f"may spend up to {most} of $5.00")
    assert told in text and (bool(told) or text.endswith("$5.00"))
