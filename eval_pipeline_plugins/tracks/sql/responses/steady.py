"""What decides what comes of a query, as the key under which it is kept, and whether it is the same each time."""

import re
from functools import lru_cache
from typing import Any

from eval_pipeline.core.hashing.described import Told, described
from eval_pipeline.core.ids import files_hash, json_hash
from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.sql.sqlite_files import beside
from eval_pipeline_plugins.sql_equivalence.queries.determinism import volatile_parts
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlCase, SqlTurn
from eval_pipeline_plugins.tracks.sql.cases.source import Database
from eval_pipeline_plugins.tracks.sql.gold.clock import clock_parts
from eval_pipeline_plugins.tracks.sql.responses.artefact import SqlAnswer
from eval_pipeline_plugins.tracks.sql.responses.structure import parsed

_OF_THE_MOMENT = re.compile(
    r"rand|uuid|newid|setseed|sample|nextval|currval|txid|version|current_setting|getvariable|last_insert|changes\b"
    r"|duckdb_|pragma|pg_|current_(user|query|connection)|sqlite_",
    re.IGNORECASE,
)
"""Words in texts of queries that draw at random, or ask for what is not in the data. More than there need be."""


def depends_on(case: SqlCase, turn: SqlTurn | None, artefact: SqlAnswer | None) -> Json:
    """See `Keeps.depends_on`: None for databases on servers, and for SQL that draws at random or reads the clock."""
    context, gold = case.context, case.turns[0].gold if turn is None else turn.gold
    sql = artefact.sql if artefact is not None else None
    database = _database(context.database)
    scripts = (gold.setup_sql, gold.check_sql)
    texts = [*([sql] if sql is not None else []), *scripts, *(gold.accepted if turn is not None else ())]
    if database is None or not all(is_steady(text, context.database) for text in texts if text):
        return None
    told = [sql, artefact.reason if artefact is not None and sql is None else None, _hash(context, database)]
    return [*told, *scripts] if turn is None else [*told, _hash((gold, turn.question, case.tags), database)]


@lru_cache(maxsize=4096)
def _hash(value: Any, database: str) -> str:
    """Returns a hash of a value; what is told of each turn's database is told once."""
    known: dict[type, Told] = {Database: lambda _: database}
    return json_hash(described(value, known))


@lru_cache(maxsize=4096)
def is_steady(sql: str, database: Database) -> bool:
    """Whether a query or script gives the same on the same data, whenever it runs; False if that is not sure."""
    tree = parsed(sql, database.dialect)
    if _OF_THE_MOMENT.search(sql) or (tree is not None and volatile_parts(tree)):
        return False
    return database.as_of is not None or not clock_parts(sql, database.dialect)


@lru_cache(maxsize=1024)
def _database(database: Database) -> str | None:
    """Returns a hash of all that is known of a database, and of its files as they are now; None on a server."""
    if database.server is not None:
        return None
    told = described(database)
    schema = database.schema
    defined = [*(view.query for view in schema.views), schema.ddl()]
    if any(clock_parts(text, database.dialect) or _OF_THE_MOMENT.search(text) for text in defined):
        return None
    paths = [database.folder / name for name in database.files]
    files = [*paths, *(other for path in paths for other in beside(path)), *database.further()]
    return json_hash([told, files_hash((path.relative_to(database.folder).as_posix(), path) for path in files)])
