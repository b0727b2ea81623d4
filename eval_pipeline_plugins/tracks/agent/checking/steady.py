"""What decides how an attempt is judged, as the key under which that is kept, and whether it is the same each time."""

import re
from platform import python_version
from sqlite3 import sqlite_version

from eval_pipeline.core.hashing.described import Told, described, installed
from eval_pipeline.core.model import Json
from eval_pipeline_plugins.tracks.agent.cases.case_file import AgentCase, AgentContext, AgentTurn
from eval_pipeline_plugins.tracks.agent.cases.servers import ServedTools
from eval_pipeline_plugins.tracks.agent.cases.settings import CommandCheck, QueryCheck
from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldOfSuite
from eval_pipeline_plugins.tracks.agent.trajectory import Trajectory

_RUNS_WITH = ("duckdb", "pandas", "numpy", "pyarrow", "openpyxl")
_OF_THE_MOMENT = re.compile(
    r"\brand|uuid|secrets|\bnow\b|today|utcnow|clock|localtime|current_|getpid|\btime\.|import time"
    r"|strftime\(\s*['\"][^'\"]*['\"]\s*\)|(?:^|[\"`;&|\n]|\$\()\s*date\b"
    r"|nextval|txid|version|environ|hostname|pragma|pg_|duckdb_|sqlite_(?!master|schema)",
    re.IGNORECASE,
)
"""Words in calls and queries that draw at random, or ask for what is not in the world. More than there need be."""


def depends_on(case: AgentCase, turn: AgentTurn | None, artefact: Trajectory | None) -> Json:
    """See `Keeps.depends_on`.

    None for an attempt alone, which is its own result, for gold of the moment, and for databases on servers.
    """
    if turn is None or any(one.scripts for one in case.context.world.databases.values()):
        return None
    texts = [str(one) for call in turn.gold.script for one in call.arguments.values()]
    texts += [one.sql for one in turn.gold.checks if isinstance(one, QueryCheck)]
    texts += [one.run for one in turn.gold.checks if isinstance(one, CommandCheck)]
    if any(map(_OF_THE_MOMENT.search, texts)):
        return None
    known: dict[type, Told] = {WorldOfSuite: lambda world: world.told(), ServedTools: lambda served: served.hash}
    # the gold has the same context
    known_gold: dict[type, Told] = {**known, AgentContext: lambda _: None}
    runs_with = [*installed(_RUNS_WITH), python_version(), sqlite_version]
    told = [runs_with, described(case.context, known), described([turn.gold, turn.question], known_gold)]
    if artefact is not None:  # the rest is in its outcome, or measured
        told += [
            [place, step.calls[0].name, dict(step.calls[0].arguments), step.error_class, step.text]
            for place, step in enumerate(artefact.steps)
            if step.kind == "tool"
        ]
    return told
