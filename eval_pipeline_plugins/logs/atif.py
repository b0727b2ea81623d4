"""Reads trajectories of ATIF, the format of Harbor: a file, a folder of them, or a folder of Harbor's jobs.

Source: RFC 0001 of Harbor (rfcs/0001-trajectory-format.md, https://github.com/harbor-framework/harbor), versions 1.0 to
1.8; in its jobs, `result.json` of a trial lies beside the folder `agent` with the trajectory.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline.operations.recorded.mapping import NO_ANSWER
from eval_pipeline.sandbox.returned.error_classes import told_failure
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects, read_json
from eval_pipeline_plugins.logs.texts import day_of, is_right, said_text, told_only, verdict_of
from eval_pipeline_plugins.trajectories import OURS, attempt, call_told, model_step, tool_step

_LINES = (".jsonl", ".ndjson", ".jsonl.gz")
Extra = dict[str, Json] | None


class _Call(BaseModel):
    model_config = FOREIGN

    tool_call_id: str
    function_name: str
    arguments: Any = None


class _Result(BaseModel):
    model_config = FOREIGN

    source_call_id: str | None = None
    content: str | list[Json] | None = None
    extra: Extra = None


class _Observation(BaseModel):
    model_config = FOREIGN

    results: list[_Result] = []


class _Step(BaseModel):
    model_config = FOREIGN

    source: Literal["system", "user", "agent"]
    message: str | list[Json] = ""
    timestamp: str | None = None
    model_name: str | None = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    metrics: dict[str, Json] | None = None
    llm_call_count: int | None = Field(default=None, ge=0)
    is_copied_context: bool | None = None
    extra: Extra = None


class _Agent(BaseModel):
    model_config = FOREIGN

    name: str
    version: str
    model_name: str | None = None


class AtifDocument(BaseModel):
    """What is read of a trajectory."""

    model_config = FOREIGN

    schema_version: str = Field(pattern=r"^ATIF-v1\.")
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: _Agent
    steps: list[_Step] = Field(min_length=1)
    final_metrics: dict[str, Json] | None = None
    continued_trajectory_ref: str | None = None
    extra: Extra = None


def read_atif(source: Path) -> Iterator[Entry]:
    """Yields the attempt of each trajectory; what a continuation goes on with belongs to the one before.

    Raises:
        InputError: a file is no trajectory, or a folder has none.
    """
    files = [source]
    if source.is_dir():
        files = sorted(source.rglob("trajectory*.json")) or sorted(source.glob("*.json"))
        if not files:
            raise InputError([Problem(str(source), None, "", "expected trajectories (.json), found none")])
    read = {path: _documents(path) for path in files}
    continued = {path: _continuation(path, found) for path, found in read.items()}
    for path, found in read.items():
        if path not in continued.values():
            for line, document in found:
                yield _entry(source, path, line, document, list(_whole(path, document, read, continued)))


def _documents(path: Path) -> list[tuple[int | None, AtifDocument]]:
    entries = json_objects(path) if path.name.endswith(_LINES) else [("", None, read_json(path))]
    found = checked(AtifDocument, path, entries, None)
    return [(line, document) for document, (_, line) in zip(found, found.places, strict=True)]


def _continuation(path: Path, found: Sequence[tuple[int | None, AtifDocument]]) -> Path | None:
    named = found[0][1].continued_trajectory_ref if len(found) == 1 else None
    return path.parent / Path(named).name if named else None


def _whole(
    path: Path,
    document: AtifDocument,
    read: Mapping[Path, Sequence[tuple[int | None, AtifDocument]]],
    continued: Mapping[Path, Path | None],
) -> Iterator[_Step]:
    """Yields the steps of a trajectory and of its continuations, without what these repeat."""
    yield from (step for step in document.steps if not step.is_copied_context)
    seen, follows = {path}, continued[path]
    while follows is not None and follows in read and follows not in seen:
        seen.add(follows)
        yield from (step for step in read[follows][0][1].steps if not step.is_copied_context)
        follows = continued[follows]


def _entry(source: Path, path: Path, line: int | None, document: AtifDocument, whole: Sequence[_Step]) -> Entry:
    extra, trial = document.extra or {}, _trial(path)
    own = extra.get(OURS)
    done = attempt(list(_steps(whole)), own, _stopped(trial))
    asked = [step for step in whole if step.source != "agent"]
    question = next((said_text(step.message) for step in asked if step.source == "user"), "")
    rewards = _object(_object(trial, "verifier_result"), "rewards")
    models = [step.model_name for step in whole if step.model_name]
    answer = done["answer"]
    given: dict[str, Any] = {
        "trajectory": done,
        "response": None if answer is None else said_text(answer),
        "error": NO_ANSWER if answer is None else None,
        "model": models[0] if models else document.agent.model_name,
        "tool": f"{document.agent.name} {document.agent.version}",
        "sample": extra.get("sample") if own else None,
        "asked_on": day_of(next((step.timestamp for step in whole if step.timestamp), None)) or extra.get("eval_date"),
        "prompt": "\n\n".join(f"[{step.source}]\n{said_text(step.message)}" for step in asked) or None,
        "source_scores": rewards or extra.get("scores"),
        "source_correct": extra.get("correct") if own else is_right(rewards.get("reward", verdict_of(rewards))),
        **_spent(document, whole),
    }
    task_id = str(trial.get("task_name") or document.session_id or document.trajectory_id or "")
    found = {
        "id": task_id,
        "metadata": {key: one for key, one in extra.items() if key != OURS},
        "questions": [question],
    }
    place = str(path.relative_to(source)) if source.is_dir() else document.trajectory_id or ""
    return Entry(line, place, told_only(given), found, task=LoggedTask(task_id, question))


def _steps(whole: Sequence[_Step]) -> Iterator[dict[str, Json]]:
    """Yields calls of the model and of tools; a call whose result the log does not have was not made."""
    for step in whole:
        if step.source != "agent":
            continue
        calls = {one.tool_call_id: call_told(one.function_name, one.arguments) for one in step.tool_calls or ()}
        metrics = step.metrics or {}
        told = {"input_tokens": metrics.get("prompt_tokens"), "output_tokens": metrics.get("completion_tokens")}
        if step.llm_call_count != 0:
            own = _object(step.extra, OURS)
            yield model_step(
                said_text(step.message), list(calls.values()), {**told, "usd": metrics.get("cost_usd"), **own}
            )
        for result in step.observation.results if step.observation else ():
            call = calls.get(result.source_call_id or "") or (next(iter(calls.values())) if len(calls) == 1 else None)
            own = _object(result.extra, OURS)
            text = said_text(result.content)
            is_error = (result.extra or {}).get("is_error") is True
            kind = told_failure(text, failed=is_error) if is_error or not own else None
            failed = {} if kind is None else {"error_class": kind}
            yield tool_step(call or call_told("environment", None), text, {**failed, **own})


def _stopped(trial: Mapping[str, Json]) -> tuple[str, str] | None:
    """Returns why a trial of Harbor ended before the agent did."""
    failed = _object(trial, "exception_info")
    kind = str(failed.get("exception_type") or "")
    if not kind:
        return None
    return "seconds" if "Timeout" in kind else "gave_up", f"{kind}: {failed.get('exception_message') or ''}".rstrip(
        ": "
    )


def _trial(path: Path) -> Mapping[str, Json]:
    beside = path.parent.parent / "result.json"
    found = read_json(beside) if path.parent.name == "agent" and beside.is_file() else None
    return found if isinstance(found, Mapping) else {}


def _spent(document: AtifDocument, whole: Sequence[_Step]) -> dict[str, Json]:
    """Returns tokens, dollars and time of an attempt: its totals, else the sums of its steps where all tell them."""
    final = document.final_metrics or {}
    made = [step.metrics or {} for step in whole if step.source == "agent" and step.llm_call_count != 0]
    found: dict[str, Any] = {}
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "usd": "cost_usd"}
    for ours, theirs in (names | {"cache_read_tokens": "cached_tokens"}).items():
        counts = [one.get(theirs) for one in made]
        known = [one for one in counts if isinstance(one, int | float)]
        summed = sum(known) if known and len(known) == len(counts) else None
        found[ours] = final.get(f"total_{theirs}", summed)
    return found | {"latency_ms": _object(final, "extra").get("latency_ms")}


def _object(told: Mapping[str, Json] | None, name: str) -> Mapping[str, Json]:
    found = (told or {}).get(name)
    return found if isinstance(found, Mapping) else {}
