"""Reads what agents did in DataAgentBench (ucbepic/DataAgentBench): its own logs, or a submission to its leaderboard.

Sources: README.md and `common_scaffold/DataAgent.py` of that repository. A run is a folder `run_N` with
`final_agent.json`, whose `messages` are those of a chat; a submission is a list of `dataset`, `query`, `run`, `answer`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline.operations.recorded.mapping import NO_ANSWER
from eval_pipeline.sandbox.returned.error_classes import told_failure
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, json_objects, read_json
from eval_pipeline_plugins.logs.texts import day_of, told_only
from eval_pipeline_plugins.traces.calls import calls_in, results_in, words_of
from eval_pipeline_plugins.trajectories import SUBMITS, attempt, call_told, model_step, tool_step

_RUN = "final_agent.json"
_RETURNS = "return_answer"
_LIMIT = "max_iterations"
_HEAD = 200
"""Signs of a result in which its tool says that it failed."""
_FINE = ("return_answer", "no_tool_call")


class _Run(BaseModel):
    model_config = FOREIGN

    messages: list[dict[str, Json]]
    query_dir: str
    final_result: str | None = None
    terminate_reason: str | None = None
    deployment_name: str | None = None
    duration: float | None = None
    start_time: float | None = None


class _Submitted(BaseModel):
    model_config = FOREIGN

    dataset: str
    query: str | int
    run: str | int
    answer: str | None = None


def read_data_agent_bench_runs(source: Path) -> Iterator[Entry]:
    """Yields the attempt of each run, or the answers of a submission.

    Raises:
        InputError: a file has another form (the message names field and entry), or a folder has no run.
    """
    if source.is_file() and source.name != _RUN:
        rows = checked(_Submitted, source, json_objects(source), None)
        yield from (_answered(row, *place) for row, place in zip(rows, rows.places, strict=True))
        return
    files = (
        [source]
        if source.is_file()
        else sorted(source.rglob(_RUN), key=lambda path: (path.parent.parent, _number(path)))
    )
    if not files:
        raise InputError([Problem(str(source), None, "", f"expected runs with a {_RUN}, found none")])
    for path in files:
        yield _entry(checked(_Run, path, [("", None, read_json(path))], None)[0], path)


def _answered(row: _Submitted, place: str, line: int | None) -> Entry:
    name, run = _name(row.dataset, str(row.query)), re.search(r"\d+", str(row.run))
    given = {"answer": row.answer or None, "error": None if row.answer else NO_ANSWER, "sample": run and int(run[0])}
    return Entry(line, place, told_only(given), {"id": name, **row.model_dump()}, task=LoggedTask(name, ""))


def _entry(run: _Run, path: Path) -> Entry:
    query = Path(run.query_dir)
    name = _name(query.parent.name, query.name)
    why = run.terminate_reason or ""
    stopped = None if not why or why in _FINE else ("model_calls" if why == _LIMIT else "gave_up", why)
    done = attempt(list(_steps(run.messages)), None, stopped)
    question = next((words_of(one) for one in run.messages if one.get("role") == "user"), "")
    given: dict[str, Any] = {
        "trajectory": done,
        "response": run.final_result or None,
        "error": None if run.final_result else why or NO_ANSWER,
        "model": run.deployment_name,
        "tool": "DataAgentBench",
        "sample": _number(path),
        "asked_on": day_of(run.start_time),
        "latency_ms": None if run.duration is None else run.duration * 1000,
    }
    return Entry(None, str(path.parent), told_only(given), {"id": name}, task=LoggedTask(name, question))


def _name(data_set: str, query: str) -> str:
    """Returns the id of the case, as the importer of the tasks makes it."""
    number = query.removeprefix("query").strip("_")
    return re.sub(r"\W+", "_", f"dab_{data_set.removeprefix('query_')}_{number}")


def _number(path: Path) -> int:
    found = re.search(r"\d+$", path.parent.name)
    return int(found[0]) if found else 0


def _steps(messages: Sequence[Mapping[str, Json]]) -> Iterator[dict[str, Json]]:
    made = dict[str, dict[str, Json]]()
    for message in messages:
        if message.get("role") == "assistant":
            calls = {
                one.id: call_told(SUBMITS[0] if one.name == _RETURNS else one.name, one.arguments)
                for one in calls_in(message)
            }
            made |= calls
            yield model_step(words_of(message), list(calls.values()), {})
        for place, text in results_in(message):
            kind = told_failure(text, failed="execution failed" in text[:_HEAD])
            yield tool_step(made.get(place) or call_told(message.get("name"), None), text, {"error_class": kind})
