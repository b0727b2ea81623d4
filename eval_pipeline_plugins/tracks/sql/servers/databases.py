"""A suite's files as a database on a server: its schema according to the scripts, and where it is loaded."""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.reading.foreign import read_text
from eval_pipeline.sandbox.sql.live.places import LivePlace, Server
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql.cases.build import CSV, SCRIPT, in_order
from eval_pipeline_plugins.tracks.sql.servers.loading import count_on, load_on

__all__ = ["count_on", "load", "loaded", "schema_of"]

_END = re.compile(r";[ \t]*(?:\n|\Z)")
_DEFINES = re.compile(r"(?i)(?:\s+|--[^\n]*\n)*(?:CREATE|ALTER)\b")


def load(server: Server, folder: Path, name: str, files: Sequence[str], dialect: str, content_hash: str) -> LivePlace:
    """Returns where a suite's database is on the server; loads it first if necessary.

    Raises:
        InputError: a file cannot be loaded.
        EvalError: the server does not answer, its address is not set, or a role has too many rights.
    """
    paths = [folder / file for file in files]
    scripts = [path for path in paths if path.suffix == SCRIPT]
    tables = [path for path in paths if path.suffix == CSV]
    ordered = in_order(tables, schema_of(paths, dialect)) if tables else ()
    return load_on(server, folder, name, scripts, ordered, content_hash)


loaded = lru_cache(maxsize=256)(load)
"""The same, without asking the server again."""


def schema_of(files: Sequence[Path], dialect: str) -> SqlSchema:
    """Returns the schema that scripts define in the server's dialect.

    Raises:
        InputError: a file is neither a script nor a table, or the definitions cannot be read.
    """
    wrong = [path for path in files if path.suffix not in (SCRIPT, CSV)]
    if wrong:
        text = f"cannot be loaded on a server: expected scripts (*{SCRIPT}) and tables (*{CSV})"
        raise InputError(Problem(str(path), None, "", text) for path in wrong)
    scripts = [path for path in files if path.suffix == SCRIPT]
    try:
        text = "\n".join(_definitions(read_text(path)) for path in scripts)
        return SqlSchema.from_ddl(text, dialect)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        place = str(scripts[0] if scripts else files[0].parent)
        raise InputError(
            [Problem(place, None, "", f"the tables cannot be determined from the scripts: {error}")]
        ) from error


def _definitions(script: str) -> str:
    """Returns only the statements that define something; parsing the rows too would take long."""
    return "".join(f"{part};\n" for part in _END.split(script) if _DEFINES.match(part))
