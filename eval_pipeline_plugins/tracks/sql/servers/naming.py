"""Makes the names of the schemas that the loader creates on servers."""

import re
from pathlib import Path

from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import text_hash

PREFIX = "eval_"
_WORD, _HASH = 16, 12


def family_of(folder: Path, database: str) -> str:
    """Returns the common beginning of the schema names of a suite's database; it differs between homes."""
    word = re.sub("[^a-z0-9]+", "_", database.lower())[:_WORD].strip("_") or "database"
    told = f"{find_home().root.resolve()}\0{folder.name}\0{database}"
    return f"{PREFIX}{word}_{text_hash(told)[:10]}_"


def schema_name(folder: Path, database: str, content_hash: str) -> str:
    """Returns the schema name for one state of the files."""
    return family_of(folder, database) + content_hash[:_HASH]
