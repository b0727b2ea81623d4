"""One step of a command: runs a stage, checks its result, and notes both, so that Dagster can be told afterwards."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from eval_pipeline.chain.runner import run_stage
from eval_pipeline.chain.stage import Check, Stage
from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.model import Json
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.stages.spending import ended_as
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.noting.commands import Command
from eval_pipeline.workspace.noting.note_files import stamp
from eval_pipeline.workspace.noting.noted import Entry
from eval_pipeline.workspace.runs import FAILED, end_run, ending_failed
from eval_pipeline.workspace.workspace import StageResult


@dataclass(frozen=True, slots=True)
class Step:
    """What a stage has made, and what its checks say of it."""

    result: StageResult
    found: Sequence[tuple[Check, CheckVerdict]]

    @property
    def blocked(self) -> bool:
        """Whether a check failed that later stages wait for."""
        return any(check.blocking and not verdict.passed for check, verdict in self.found)


def checked(stage: Stage, inputs: Inputs) -> Step:
    """Runs a stage and its checks; the run's row in `runs` becomes `failed` with them.

    Raises:
        EvalError: the stage cannot be run.
    """
    if stage.whole_suite or inputs.partition is None:
        own = inputs.anew(partition=None)
        return Step(run_stage(stage, own), [(check, check.verdict(own)) for check in stage.checks])
    with ending_failed(inputs.workspace, inputs.place, inputs.run.run_id):
        step = Step(run_stage(stage, inputs), [(check, check.verdict(inputs)) for check in stage.checks])
    if step.blocked:
        end_run(inputs.workspace, inputs.place, inputs.run.run_id, FAILED)
    return step


def close_alone(inputs: Inputs) -> None:
    """Ends the run's row in `runs` where nothing of the evaluation is going to be published."""
    end_run(inputs.workspace, inputs.place, inputs.run.run_id, ended_as(inputs))


def noted_step(stage: Stage, inputs: Inputs, command: Command) -> Step:
    """Like `checked`; notes what came of it as a step of the command."""
    began = stamp()
    try:
        step = checked(stage, inputs)
    except Exception as error:
        note_step(command, stage, inputs, began, {"error": str(error) or type(error).__name__})
        raise
    note_step(command, stage, inputs, began, made(step))
    return step


def note_step(command: Command, stage: Stage, inputs: Inputs, began: str, told: Entry) -> None:
    """Notes a step with what is told of it."""
    of_suite = stage.whole_suite or inputs.partition is None
    place: dict[str, Json] = {"stage": stage.name, "run": inputs.run.run_id, "suite": inputs.suite}
    place["model_version"] = None if of_suite else inputs.place.model_version
    place["eval_date"] = None if of_suite else inputs.place.eval_date.isoformat()
    command.done({**place, "began": began, "ended": stamp(), **told}, durable=False)


def made(step: Step) -> Entry:
    """Returns what a note tells of a step that went well."""
    result = step.result
    checks = [{"name": check.name, **_told(check, verdict)} for check, verdict in step.found]
    facts = {"rows": result.rows, "hash": result.content_hash, "reused": result.reused, "facts": dict(result.facts)}
    blocked = {"error": "; ".join(failures(step))} if step.blocked else {}
    return {**facts, "checks": checks, **blocked}


def _told(check: Check, verdict: CheckVerdict) -> dict[str, Json]:
    told = asdict(verdict)
    del told["example"]  # Dagster's storage must not hold responses
    return {**told, "warning": verdict.warning or check.warning}


def failures(step: Step) -> list[str]:
    """Returns a sentence for each failed check that is not a mere warning."""
    return [
        f"check {check.name}: {verdict.text}"
        for check, verdict in step.found
        if not verdict.passed and not (check.warning or verdict.warning)
    ]


def failure(error: EvalError) -> str:
    """Returns the sentence of an error, with the excerpt of an answer that belongs to it."""
    return f"{error} (e.g. {error.example})" if error.example else str(error)
