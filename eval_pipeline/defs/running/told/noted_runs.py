"""What a command's note tells of its runs, as values: the steps of each with their times, and those that were left out.

Nothing here asks Dagster; `telling` makes its events of this.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval_pipeline.chain.stage import Chain, Stage, before
from eval_pipeline.core.model import Json
from eval_pipeline.operations.upkeep.keeping import REPORTS
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.workspace.noting.noted import Entry, Noted
from eval_pipeline.workspace.workspace import StageResult


@dataclass(frozen=True, slots=True)
class NotedStep:
    """A stage that a run of a command has run.

    Attributes:
        began, ended: in seconds since 1970.
        error: why what depends on it was not made: it failed, or a check; empty if it went well.
        result: what it made; None if it failed.
        verdicts: what its checks said, by name.
    """

    suite: str
    stage: str
    began: float
    ended: float
    error: str
    result: StageResult | None
    verdicts: Mapping[str, CheckVerdict]


@dataclass(frozen=True, slots=True)
class NotedRun:
    """A run of a command: of one model version, or of the comparisons of suites.

    Attributes:
        model_version: empty for comparisons.
        eval_date: may be empty for comparisons.
        status: `success`, `failed` or `canceled`.
        steps: in the order in which they ended; at least one.
    """

    run_id: str
    model_version: str
    eval_date: str
    scope: str
    epoch: str
    status: str
    began: float
    ended: float
    steps: tuple[NotedStep, ...]

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites of its steps."""
        return tuple(dict.fromkeys(step.suite for step in self.steps))


def noted_runs(noted: Noted) -> Iterator[NotedRun]:
    """Yields the runs of a command that got as far as a step."""
    steps: dict[str, list[NotedStep]] = {}
    ends: dict[str, Entry] = {}
    for entry in noted.entries:
        if "stage" in entry:
            steps.setdefault(entry["run"], []).append(_step(entry))
        elif "run_ended" in entry:
            ends[entry["run_ended"]] = entry
    for entry in noted.entries:
        if "suites" not in entry or not (own := steps.get(entry["run"])):
            continue
        own.sort(key=lambda step: step.ended)
        end = ends.get(entry["run"], {"status": "failed"})
        # All runs of a command are noted as ended at its end; one that came to its own end did so with its last step.
        ended = own[-1].ended if end["status"] == "success" or "at" not in end else _seconds(end["at"])
        name, day, scope, epoch = (
            str(entry.get(name) or "") for name in ("model_version", "eval_date", "scope", "epoch")
        )
        began = _seconds(entry["at"])
        yield NotedRun(entry["run"], name, day, scope, epoch, end["status"], began, ended, tuple(own))


def left_out(chain: Chain, steps: Mapping[str, NotedStep]) -> list[Stage]:
    """Returns the stages of an evaluation that a run left out because one that they need had failed.

    Reports do not count, as they may not have been asked for.
    """
    missing = {name for name, step in steps.items() if step.error}
    found = []
    for stage in chain:
        if stage.name not in steps and missing.intersection(before(chain, stage)):
            missing.add(stage.name)
            if not stage.whole_suite and stage.name not in REPORTS:
                found.append(stage)
    return found


def _step(entry: Entry) -> NotedStep:
    verdicts = {
        check["name"]: CheckVerdict(check["passed"], check["text"], check["facts"], check["warning"])
        for check in entry.get("checks", ())
    }
    result = None
    if "rows" in entry:
        facts = {name: _fact(value) for name, value in entry["facts"].items()}
        result = StageResult(entry["rows"], entry["hash"], entry["reused"], facts)
    began, ended = _seconds(entry["began"]), _seconds(entry["ended"])
    return NotedStep(entry["suite"], entry["stage"], began, ended, entry.get("error", ""), result, verdicts)


def _fact(value: Json) -> Any:
    """Returns a fact as the stage told it; JSON has no paths."""
    return Path(str(value["path"])) if isinstance(value, dict) and value.keys() == {"path"} else value


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()
