"""Writes the databases of suite `sql_sample` as SQL text: `python data/generators/sql_sample [FOLDER]`.

The same bytes each time. The cases were written against these rows, so a change here needs a new version of the suite.
"""

import sys
from pathlib import Path
from random import Random

import clinic
import freight
import shop
from statements import script

SEED = 20_260_704
FOLDER = Path(__file__).parents[2] / "suites" / "sql_sample" / "databases"


def write(folder: Path) -> None:
    """Writes a folder a database."""
    for database in (shop, clinic, freight):
        rows = database.rows(Random(f"{SEED} {database.__name__}"))
        path = folder / database.__name__ / "database.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script(database.DDL, rows), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
