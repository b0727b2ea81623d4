"""An evaluation whose cases are read by ranges is, byte for byte, the one that was held in memory as a whole."""

import gc
import json
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Case, Json
from eval_pipeline.stages.scoring.turn_rows import result_columns
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.asked import ranges
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_plugins.tracks.agent.trajectory import Trajectory
from eval_pipeline_tests.support import Lab, case

RANGE = 12
"""Turns in a range."""
CASES = 30
PROGRAMS = (("add(50, 7)", 57.0), ("divide(57, 50)", 1.14), ("subtract(50, 8), divide(#0, 50)", 0.84))
RATES = {"execution_error": 0.35, "sign_error": 0.3}
OVERRIDES = [
    {"turn": "c3#0", "action": "excluded", "who": "a reviewer", "why": "the document lacks it"},
    {
        "turn": "c20#0",
        "action": "corrected",
        "who": "a reviewer",
        "why": "added",
        "gold": {"program": "50", "answer": 50},
    },
]


def filled(lab: Lab, history: str) -> None:
    """A suite of many ranges; some of its answers do not run, some are wrong, some of the gold is overridden."""
    cases = [case(f"c{number}", *PROGRAMS[: 1 + number % 3], tags=["odd"] * (number % 2)) for number in range(CASES)]
    (lab.suite(cases=cases) / "gold_overrides.yaml").write_text(yaml.safe_dump(OVERRIDES))
    more = {"samples_per_turn": 2, "history": history, "options": {"rates": RATES}}
    lab.versions({"name": "weak", "provider": "simulated", **more})


def made(lab: Lab) -> dict[str, Any]:
    """Runs all stages; returns the content hash of each table, and what each check says."""
    inputs = lab.inputs(version="weak")
    found: dict[str, Any] = {}
    for stage in chain_of(inputs.track):
        if stage.deliver is None:
            run_stage(stage, inputs)
            for table in stage.writes:
                header = inputs.header(table)
                assert header is not None
                found[table.name] = header.content_hash
            found |= {check.name: check.verdict(inputs) for check in stage.checks}
    return found


@pytest.mark.parametrize("history", ["gold", "own"])
def test_ranges_give_the_same_record(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: str) -> None:
    filled(lab, history)
    whole = made(lab)
    inputs = lab.inputs(version="weak")
    stages = {stage.name: stage for stage in chain_of(inputs.track)}
    assert inputs.header(stages["recovery_attempts"].writes[0]).rows > RANGE
    monkeypatch.setattr(ranges, "HELD_TURNS", 0)
    monkeypatch.setattr(ranges, "RANGE_TURNS", RANGE)
    other = Lab(Home(tmp_path / "by ranges", lab.home.data))
    largest = watched(monkeypatch)
    assert made(other) == whole
    assert 0 < max(largest) < 2 * RANGE  # whole cases of up to three turns


@pytest.mark.parametrize("turns_left", [65, 4])
def test_cases_that_are_replaced_meanwhile_are_not_mixed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, turns_left: int
) -> None:
    monkeypatch.setattr(ranges, "HELD_TURNS", 20)
    monkeypatch.setattr(ranges, "RANGE_TURNS", RANGE)
    filled(lab, "gold")
    folder = lab.home.data / "suites" / "small" / "cases"
    ingest(lab)
    real, ranges_read = Workspace.cases_within, []

    def replacing(workspace: Workspace, *given: Any) -> tuple[Case, ...]:
        ranges_read.append(given)
        if len(ranges_read) == 2 and turns_left > 20:
            lab.suite(cases=[case("a0", *PROGRAMS), case("a1", *PROGRAMS[:2])])  # the others move on
            ingest(lab)
        elif len(ranges_read) == 2:
            for path in {*folder.iterdir()} - {folder / "c3.yaml", folder / "c20.yaml"}:
                path.unlink()
            ingest(lab)
        return real(workspace, *given)

    monkeypatch.setattr(Workspace, "cases_within", replacing)
    with pytest.raises(EvalError, match="another run has replaced cases in the record meanwhile; start this run again"):
        lab.stage("generations", lab.inputs(version="weak"))
    assert lab.inputs(version="weak").header(GENERATIONS) is None
    lab.stage("generations", lab.inputs(version="weak"))
    turns = lab.inputs(version="weak").read(GENERATIONS, ["turn_id", "sample"]).to_pylist()
    assert len(turns) == len({tuple(turn.values()) for turn in turns}) == 2 * turns_left


def ingest(lab: Lab) -> None:
    for stage in ("raw_dataset", "cases"):
        lab.stage(stage, lab.inputs(version="weak"))


def watched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lets no stage read all cases at once; returns a list of how many turns were read together."""
    seen: list[int] = []
    real = Workspace.cases_within

    def counted(workspace: Workspace, *given: Any) -> tuple[Case, ...]:
        found = real(workspace, *given)
        seen.append(sum(len(case.turns) for case in found))
        return found

    def refused(*_: object) -> NoReturn:
        raise AssertionError("all cases of a large suite were read at once")

    monkeypatch.setattr(Workspace, "cases_within", counted)
    monkeypatch.setattr(Workspace, "cases", refused)
    return seen


def attempt(told: int) -> Json:
    """What an agent did, with a long result."""
    step = {"kind": "tool", "name": "shell", "arguments": {"command": f"cat {told}"}, "result": f"{told} " * 2000}
    return {"steps": [step], "answer": told, "ended": "answered"}


def test_attempts_of_agents_are_held_a_range_at_a_time(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lab.suite("work", [work(number) for number in range(CASES)], track="agent")
    (folder / "worlds" / "shop" / "files").mkdir(parents=True)
    (folder / "worlds" / "shop" / "world.yaml").write_text("description: A shop.\n")
    (folder / "worlds" / "shop" / "files" / "n.txt").write_text("1")
    rows = [{"case_id": f"c{n}", "turn_index": 0, "response": attempt(n)} for n in range(CASES)]
    given = lab.home.data / "given.jsonl"
    given.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    monkeypatch.setattr(ranges, "RANGE_BYTES", 8 * len(json.dumps(attempt(11))))
    held: list[int] = []
    looks = count(1)

    def living() -> int:
        return sum(isinstance(one, Trajectory) for one in gc.get_objects())

    def counted(*_: Any) -> tuple[()]:
        if next(looks) % 4 == 0:  # each looks at all that the process holds
            held.append(living() - before)
        return ()

    before = living()  # other tests' golds, which the process keeps

    monkeypatch.setattr("eval_pipeline_plugins.tracks.agent.running.proving.gold_problem", lambda case: None)
    monkeypatch.setattr("eval_pipeline_plugins.tracks.agent.checking.evidence.evidence_of", counted)
    monkeypatch.setattr("eval_pipeline.stages.score.result_columns", lambda block: counted() or result_columns(block))
    said = lab.cli("import", "predictions", str(given), "--suite", "work", "--model-version", "mine")
    assert said.code == 0, said.text
    lab.evaluate("work", "mine", upto="turn_metrics")
    assert next(looks) > CASES
    assert max(held) <= CASES / 2


def work(number: int) -> dict[str, Any]:
    return {"id": f"c{number}", "world": "shop", "task": f"Task {number}", "gold": [{"answer": number}]}
