"""Reads DataAgentBench (ucbepic/DataAgentBench) as tasks in worlds: questions over several databases of a data set.

Sources: README.md of that repository, its folders `query_…` (`db_config.yaml`, `db_description.txt`, and for each
question `query.json` and `ground_truth.csv`). What is right is `ground_truth.csv`, a value, a list or a table, judged
by our own contract; `validate.py` is a program of somebody else's and is not run.
"""

import csv
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.importing import PlacedCase
from eval_pipeline_plugins.data_sets.agent_tasks.dabstep import value_of
from eval_pipeline_plugins.data_sets.agent_tasks.made_worlds import make_world, read_yaml
from eval_pipeline_plugins.data_sets.pandas_code.dacode import UnusableTaskError, left_out
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked, read_json, read_text

_CONFIG, _DESCRIPTION, _QUERY, _TRUTH = "db_config.yaml", "db_description.txt", "query.json", "ground_truth.csv"


class _Database(BaseModel):
    model_config = FOREIGN

    db_type: str
    db_path: str | None = None
    sql_file: str | None = None


class _Config(BaseModel):
    model_config = FOREIGN

    db_clients: dict[str, _Database] = Field(min_length=1)


def read_data_agent_bench(
    source: Path, limit: int | None, given: Sequence[Path], folder: Path
) -> Iterator[dict[str, Json]]:
    """Yields the cases by data set and number, and makes a world for each data set in the suite's folder.

    Args:
        source: the repository, or one folder `query_…` of it.
        limit: maximum number of questions.
        given: where the files lie that `db_config.yaml` names: the same folder, or others.
        folder: folder of the suite that is made.

    Raises:
        InputError: there is no question, or a file is wrong; the message names it.
    """
    sets = [source] if (source / _CONFIG).is_file() else sorted(path.parent for path in source.glob(f"*/{_CONFIG}"))
    places = [path.parent for one in sets for path in sorted(one.glob(f"query*/{_QUERY}"), key=_number)]
    if not places:
        raise InputError([Problem(str(source), None, "", f"expected folders query_… with a {_CONFIG}, found none")])
    for place in places[:limit]:
        data_set = place.parent.name.removeprefix("query_")
        name = re.sub(r"\W+", "_", f"dab_{data_set}_{place.name.removeprefix('query').strip('_')}")
        with left_out(folder, name):
            world = _world(place.parent, data_set, given, folder)
            told = {"id": name, "world": world, "task": _question(place / _QUERY), "tags": [data_set]}
            yield PlacedCase({**told, "gold": [{"answer": _truth(place / _TRUTH)}], "checks": ["answer"]}, place.name)


def _number(path: Path) -> tuple[int, str]:
    found = re.search(r"\d+", path.parent.name)
    return int(found[0]) if found else 0, path.parent.name


def _question(path: Path) -> str:
    found = read_json(path)
    told = found.get("query") if isinstance(found, dict) else found
    if not isinstance(told, str) or not told.strip():
        raise InputError([Problem(str(path), None, "", "expected a text, or an object with a text `query`")])
    return told.strip()


def _truth(path: Path) -> Json:
    """Returns what is right: a value, a list of values, or a list of rows."""
    if not path.is_file():
        raise UnusableTaskError(f"it has no {_TRUTH}")
    rows: list[list[Json]] = [
        [value_of(cell.strip()) for cell in row] for row in csv.reader(read_text(path).splitlines()) if any(row)
    ]
    if not rows:
        raise UnusableTaskError(f"its {_TRUTH} is empty")
    if all(len(row) == 1 for row in rows):
        values = [row[0] for row in rows]
        return values if len(values) > 1 else values[0]
    return list(rows[0]) if len(rows) == 1 else [list(row) for row in rows]


def _world(place: Path, data_set: str, given: Sequence[Path], folder: Path) -> str:
    """Makes the world of a data set, unless it is there, and returns its name."""
    name = re.sub(r"\W+", "_", data_set)
    if (folder / "worlds" / name).exists():
        return name
    path = place / _CONFIG
    config = checked(_Config, path, [("", None, read_yaml(path))], None)[0]
    databases, files, scripts = dict[str, dict[str, Json]](), dict[str, Path](), dict[str, Path]()
    for one, told in config.db_clients.items():
        if told.db_type not in ("sqlite", "duckdb", "postgres"):
            raise UnusableTaskError(f"its database {one} is one of {told.db_type}, which no world has")
        found = _found(told.db_path or told.sql_file or "", place, given)
        kind = scripts if told.db_type == "postgres" else files
        own = found.name if kind.get(found.name, found) == found else f"{one}_{found.name}"
        kind[own] = found
        databases[one] = {"scripts": [own]} if kind is scripts else {"file": own}
        databases[one]["read_only"] = True
    described = read_text(place / _DESCRIPTION).strip() if (place / _DESCRIPTION).is_file() else ""
    made = make_world(folder, name, files, described, databases)
    for own, script in scripts.items():
        shutil.copyfile(script, made / own)
    return name


def _found(named: str, place: Path, given: Sequence[Path]) -> Path:
    """Returns the file that a data set names; whoever wrote that may have named any file of this machine."""
    ways = (f"{place.name}/{named}", named, Path(named).name)
    is_name = named and "\0" not in named
    tried = [(top.resolve(), (top / way).resolve()) for top in (*given, place) for way in ways] if is_name else []
    found = next((path for top, path in tried if path.is_file() and path.is_relative_to(top)), None)
    if found is None:
        raise UnusableTaskError(f"there is no {named or 'file of a database'}, which {_CONFIG} names")
    return found
