"""Runs the gold of a case, and looks at what there is in the end of an attempt."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from eval_pipeline.core.ids import canonical_json, json_hash
from eval_pipeline.core.model import ErrorClass, Json, ToolResult
from eval_pipeline.core.system.stopped import note_stopped
from eval_pipeline.sandbox.world.changes import ChangedFile, changed
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.tracks.base import plain_json
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase
from eval_pipeline_plugins.tracks.agent.running.blocking import own_worlds
from eval_pipeline_plugins.tracks.agent.running.looking import Looked, look_code, looked
from eval_pipeline_plugins.tracks.agent.running.solving import TaskWorld, followed, opened_for
from eval_pipeline_plugins.tracks.agent.trajectory import Trajectory

T = TypeVar("T")
_LOOK_S = 60.0
_MOST, _MOST_BYTES = 64, 32 << 20
_LIMITS = (ErrorClass.TIMEOUT.value, ErrorClass.MEMORY.value, ErrorClass.SANDBOX.value)
_runs: "dict[str, tuple[Trajectory, int]]" = {}
_looks: "dict[str, tuple[Looked, int]]" = {}
_commands: "dict[str, tuple[ToolResult, int]]" = {}
"""What was found, each with how many bytes it takes, about."""


def gold_run(case: AgentCase) -> Trajectory | str:
    """Returns what the gold of a case does in its world, or why it does not run; it is run once a process."""
    context, script = case.context, [[call.name, dict(call.arguments)] for call in case.turns[0].gold.script]
    told = plain_json([context.tools, context.limits, context.facts, context.otherwise, context.then])
    key = json_hash([context.world.hash, context.served.hash, told, script])
    if (known := _runs.get(key)) is not None:
        return known[0]
    try:
        found = own_worlds().wait(_followed(case))
    except WorldError as error:
        return f"its world has ended: {error}"
    if any(step.error_class in _LIMITS for step in found.tool_steps()):
        note_stopped()
        return found
    return _kept(_runs, key, found, len(canonical_json(found.as_json())))


async def _followed(case: AgentCase) -> Trajectory:
    context = case.context
    async with opened_for(own_worlds().worlds, context) as opened:
        return await followed(TaskWorld(opened, context), case.turns[0].gold.script, context)


def look(
    case: AgentCase,
    end_state: Mapping[str, Json],
    queries: Sequence[tuple[str, str]],
    frees: Sequence[Sequence[str]] = (),
) -> Looked:
    """Returns what databases, tables in files and queries give in an end state; it is looked at once a process.

    Args:
        case: the case.
        end_state: what has changed, by path.
        queries: what is asked, each with the name of a database.
        frees: see `inside.looked.tabled`.

    Raises:
        WorldError: its world has ended, which says nothing about the end state.
    """
    world = case.context.world
    key = json_hash([world.hash, dict(end_state), list(queries), [list(one) for one in frees]])
    if (known := _looks.get(key)) is not None:
        return known[0]
    state = {path: changed(told) for path, told in end_state.items()}
    hosted = {name: [sql for of, sql in queries if of == name] for name, one in world.databases.items() if one.scripts}
    files = {name: file for name, (file, _) in world.files.items() if name not in hosted}
    name, code = look_code(files, _tabular(state), queries, [(), *frees])
    found, told = own_worlds().looked(
        world.folder(), code, _LOOK_S, world.files, state, (world.hosted(), hosted, [(), *frees])
    )
    seen = looked(found, name, told, queries)
    if seen.problem:  # perhaps the machine's
        note_stopped()
        return seen
    return _kept(_looks, key, seen, len(canonical_json([seen.tables, seen.queries, seen.files])))


def command_run(case: AgentCase, end_state: Mapping[str, Json], command: str, seconds: float) -> ToolResult:
    """Returns what a command of the shell gives in an end state; it is run once a process.

    Raises:
        WorldError: its world has ended, which says nothing about the end state.
    """
    world = case.context.world
    key = json_hash([world.hash, dict(end_state), command, seconds])
    if (known := _commands.get(key)) is not None:
        return known[0]
    state = {path: changed(told) for path, told in end_state.items()}
    files, hosted = world.files, world.hosted()
    found = own_worlds().commanded(world.folder(), command, seconds, files, state, hosted, world.packages)
    if found.error_class is not None and found.error_class.value in _LIMITS:  # perhaps the machine's
        note_stopped()
        return found
    return _kept(_commands, key, found, len(found.text))


def _tabular(state: Mapping[str, ChangedFile]) -> list[str]:
    return [path for path, one in state.items() if one.kind == "file" and path.endswith((".parquet", ".xlsx"))]


def _kept(kept: dict[str, tuple[T, int]], key: str, found: T, size: int) -> T:
    """Keeps what was found, and of all only the newest; the last one however large it is."""
    while kept and (len(kept) >= _MOST or sum(one for _, one in kept.values()) + size > _MOST_BYTES):
        kept.pop(next(iter(kept)), None)
    kept[key] = found, size
    return found
