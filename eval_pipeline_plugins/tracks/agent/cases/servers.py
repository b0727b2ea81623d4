"""The tools of a suite's own servers: they are asked once what they have, in a jail over the first of its worlds."""

import json
import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import file_hash, json_hash, json_text
from eval_pipeline.core.model import Json, Tool
from eval_pipeline.core.values import value
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.sandbox.world.tools import TOOLS
from eval_pipeline.sandbox.world.worlds import Servers
from eval_pipeline.store.durable import replace_durably, temporary_path
from eval_pipeline_plugins.tracks.agent.cases.settings import AgentOptions
from eval_pipeline_plugins.tracks.agent.cases.worlds import FOLDER as WORLDS
from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldOfSuite
from eval_pipeline_plugins.tracks.agent.trajectory import ANSWER, ASK

FOLDER = "tools"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LIST_S = 60.0
_Listed = Mapping[str, list[Any] | str]


@value
class ServedTools:
    """Tools of a suite's servers.

    Attributes:
        tools: by name.
        server_of: the server of each.
        servers: what a world starts them by.
        hash: of all that decides what they do; empty if there are none.
    """

    tools: Mapping[str, Tool]
    server_of: Mapping[str, str]
    servers: Servers | None = None
    hash: str = ""

    def chosen(self, names: Sequence[str] | None) -> tuple[str, ...] | str:
        """Returns those tools, of a world or served, all without names; or what is wrong with a name."""
        known = (*TOOLS, *self.tools)
        unknown = [name for name in names or () if name not in known]
        return f"expected some of {', '.join(known)}, found '{unknown[0]}'" if unknown else tuple(names or known)


def read_served(folder: Path, options: AgentOptions, world: WorldOfSuite) -> ServedTools:
    """Returns the tools of a suite's servers; what they tell is kept in the home as long as nothing changes.

    Raises:
        InputError: a server does not start or tells no tools, or a name in `tools` is unknown.
        NoSandboxError: this machine has no jail to start it in.
    """
    served = _served(folder, options, world) if options.mcp else ServedTools({}, {})
    if isinstance(told := served.chosen(options.tools), str):
        raise InputError([Problem(f"{folder.name}/suite.yaml", None, "options.tools", told)])
    return served


def _served(folder: Path, options: AgentOptions, world: WorldOfSuite) -> ServedTools:
    own = folder / FOLDER
    files = sorted(path for path in own.rglob("*") if path.is_file())
    hashes = [[path.relative_to(own).as_posix(), file_hash(path)] for path in files]
    installed = sorted(path.name for path in Path(sysconfig.get_paths()["purelib"]).glob("*.dist-info"))
    commands = {name: ((one.command, *one.args), one.env) for name, one in options.mcp.items()}
    servers = Servers(commands, own if own.is_dir() else None)
    made_from = json_hash([commands, hashes])
    kept = find_home().root / WORLDS / f"tools-{json_hash([made_from, installed, world.hash])}.json"
    if kept.is_file():
        listed: _Listed = json.loads(kept.read_text())
    else:
        listed = _listed(servers, world)
    problems, tools, server_of = list[Problem](), dict[str, Tool](), dict[str, str]()
    for name, found in listed.items():
        place = f"options.mcp.{name}"
        try:
            for tool in _read(found):
                if tool.name in {*TOOLS, ANSWER, ASK} or tool.name in tools:
                    raise ValueError(
                        f"it has a tool '{tool.name}', and so has {server_of.get(tool.name, 'every world')}"
                    )
                tools[tool.name], server_of[tool.name] = tool, name
        except ValueError as error:
            problems.append(Problem(f"{folder.name}/suite.yaml", None, place, str(error)))
    if problems:
        raise InputError(problems)
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_path(kept)
        temporary.write_text(json_text(listed))
        replace_durably(temporary, kept)
    told: Json = [[one.name, one.description, one.parameters] for one in tools.values()]
    return ServedTools(tools, server_of, servers, json_hash([made_from, told]))


def _listed(servers: Servers, world: WorldOfSuite) -> dict[str, list[Any] | str]:
    """Asks each server what tools it has; a sentence where that fails."""
    from eval_pipeline_plugins.tracks.agent.running.blocking import BlockingWorlds

    worlds = BlockingWorlds()

    async def asked() -> dict[str, list[Any] | str]:
        async with worlds.worlds.open(world.folder(), world.files, servers=servers, packages=world.packages) as opened:
            return {name: await opened.listed(name, _LIST_S) for name in servers.commands}

    try:
        return worlds.wait(asked())
    except WorldError as error:
        return dict.fromkeys(servers.commands, f"the world in which it is asked for its tools has ended: {error}")
    finally:
        worlds.close()


def _read(found: list[Any] | str) -> Iterator[Tool]:
    """Yields the tools that a server tells. Raises a ValueError with one sentence."""
    if isinstance(found, str):
        raise ValueError(found)
    if not found:
        raise ValueError("it has no tools")
    for one in found:
        match one:
            case {"name": str() as name, "inputSchema": {"type": "object"} as schema, **rest}:
                if not _NAME.fullmatch(name):
                    raise ValueError(
                        f"it has a tool '{name[:80]}'; names may have letters, digits, _ and -, 64 at most"
                    )
                yield Tool(name, str(rest.get("description") or rest.get("title") or ""), schema)
            case _:
                raise ValueError(f"it tells a tool without 'name' or 'inputSchema': {json.dumps(one)[:100]}")
