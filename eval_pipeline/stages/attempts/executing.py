"""Opens the executor of artefacts: in this process, or on the workers of a cluster while this process asks."""

import asyncio
import atexit
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from threading import Lock
from typing import Any, ClassVar

from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Case, Json, Outcome
from eval_pipeline.stages.scoring.keeping import keeping, read_outcome, told_outcome
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import CASES
from eval_pipeline.tracks.abilities import executor_of
from eval_pipeline.tracks.base import Executor, Track
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.shards.cluster import Cluster, Task, open_cluster
from eval_pipeline.workspace.shards.workers import admit, at_home, refuse_other_code, told_home
from eval_pipeline.workspace.workspace import Workspace


@asynccontextmanager
async def open_executor(inputs: Inputs) -> AsyncIterator[Executor]:
    """Opens the track's executor; if `EVAL_CLUSTER` is set and executing takes time, artefacts run on its workers.

    Asking stays in this process, so that budgets and rate limits stay whole, and workers need no keys.
    """
    async with executor_of(inputs.track) as local:
        opened = None if local.immediate else open_cluster()
        if opened is None:
            yield keeping(inputs, local)
            return
        with opened as cluster:
            yield keeping(inputs, RemoteExecutor(cluster, inputs))


class RemoteExecutor:
    """Executes artefacts on workers, with the outcome that they have in this process."""

    immediate: ClassVar[bool] = False

    def __init__(self, cluster: Cluster, inputs: Inputs) -> None:
        self._cluster = cluster
        self._track = inputs.track
        self._of_suite: dict[str, Json] = {
            **told_home(inputs.workspace.home),
            "suite": inputs.suite,
            "code": _code(inputs.workspace, inputs.suite),
        }

    async def execute(self, artefact: Any, case: Case) -> Outcome:
        """Returns the outcome of an artefact. Raises EvalError if no worker can execute it."""
        written = json_text(self._track.artefact_json(artefact))
        task = {**self._of_suite, "name": case.id, "case": case.id, "artefact": written}
        return read_outcome(await self._cluster.call(execute_there, task))


def execute_there(task: Task) -> dict[str, Json]:
    """Executes an artefact on a worker.

    Raises:
        UsageError: the worker is not fit for it; see `workers.admit`.
        NoSandboxError: it has no sandbox.
    """
    suite = str(task["suite"])
    workspace = at_home(str(task["home"]), str(task["data"]))
    track = workspace.track(suite)
    admit(workspace, track)
    if _code(workspace, suite) != task["code"]:
        raise refuse_other_code()
    artefact = track.artefact_from_json(parse_json(str(task["artefact"])))
    if track.name not in _kept:
        _kept[track.name] = _Kept(track)
    outcome = _kept[track.name].execute(artefact, _case(workspace, suite, str(task["case"])))
    return told_outcome(outcome)


def _code(workspace: Workspace, suite: str) -> str:
    """Returns a hash of the code, the libraries and the cases that decide outcomes."""
    from eval_pipeline.stages.code import attempts_code

    inputs = Inputs(workspace, suite)
    found = workspace.fingerprints.of(*attempts_code(inputs))
    return json_text([found.code, sorted(found.libraries.items()), inputs.hashes((CASES,))])


def _case(workspace: Workspace, suite: str, case_id: str) -> Case:
    header = workspace.record.header(CASES, RecordKey.of_suite(suite))
    held = {"of": suite, CASES.name: header.content_hash if header else ""}
    found: dict[str, Case] = workspace.remembered(
        "cases by id", held, lambda: {case.id: case for case in workspace.cases(suite)}
    )
    return found[case_id]


class _Kept:
    """An executor that stays open as long as the worker lives, with an event loop of its own."""

    def __init__(self, track: Track) -> None:
        self._lock, self._runner, self._stack = Lock(), asyncio.Runner(), AsyncExitStack()
        self._executor = self._runner.run(self._stack.enter_async_context(executor_of(track)))
        atexit.register(self._close)

    def execute(self, artefact: Any, case: Case) -> Outcome:
        with self._lock:
            return self._runner.run(self._executor.execute(artefact, case))

    def _close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()


_kept: dict[str, _Kept] = {}
