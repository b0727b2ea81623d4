"""Every query of the SQL cookbook runs against a store made from the shipped suite, and gives the promised columns."""

import os
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from eval_pipeline.store.published.query import run_query
from eval_pipeline_tests.support import Said, built_once, command

COOKBOOK = Path(__file__).parents[2] / "docs" / "sql-cookbook.md"
DATES = ("2026-01-14", "2026-01-15")
MODEL_VERSIONS = ("simulated-strong", "simulated-weak")

_QUERY = re.compile(r"^```sql\n(?P<sql>.*?)^```\n(?P<after>\n(?:[^\n]+\n)+)?", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"`(\w+)`")


class Recipe(NamedTuple):
    """A query of the cookbook, with the columns that the line below it names where the query does not."""

    sql: str
    columns: tuple[str, ...]
    may_be_empty: bool


def recipes() -> dict[str, Recipe]:
    """The queries by place: line number and first words."""
    text = COOKBOOK.read_text(encoding="utf-8")
    found = {}
    for match in _QUERY.finditer(text):
        line = text.count("\n", 0, match.start("sql")) + 1
        stated = (match["after"] or "").strip()
        columns = tuple(_COLUMN.findall(stated)) if stated.startswith("Columns: ") else ()
        found[f"line {line}"] = Recipe(match["sql"], columns, stated.endswith("May be empty."))
    return found


RECIPES = recipes()


@pytest.fixture(scope="session", params=["file", "catalog"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of that form, with two dates of two simulated model versions."""
    home = built_once(tmp_path_factory, "cookbook", evaluate)
    if request.param == "catalog":
        home = built_once(tmp_path_factory, "cookbook-catalog", partial(as_catalog, home))
    return home / "eval.duckdb"


def evaluate(home: Path) -> None:
    asked = [word for name in MODEL_VERSIONS for word in ("--model-version", name)]
    for day in DATES:
        call(home, "run", "--no-report", "--suite", "finqa_sample", "--eval-date", day, *asked)


def as_catalog(home: Path, other: Path) -> None:
    """Makes a home with the same record, published as a catalog."""
    shutil.copytree(home / "record", other / "record")
    call(other, "publish", EVAL_STORE="catalog")


def call(home: Path, *arguments: str, **variables: str) -> Said:
    kept = {name: value for name, value in os.environ.items() if name not in {"EVAL_DATA", "EVAL_STORE"}}
    with patch.dict(os.environ, kept | {"EVAL_HOME": str(home)} | variables, clear=True):
        said = command(*arguments)
    assert said.code == 0, said.text
    return said


def test_the_cookbook_has_queries() -> None:
    assert len(RECIPES) >= 15
    assert len({recipe.sql for recipe in RECIPES.values()}) == len(RECIPES)


@pytest.mark.parametrize("place", RECIPES)
def test_query_gives_what_the_cookbook_says(place: str, store: Path) -> None:
    recipe = RECIPES[place]
    rows = run_query(store, recipe.sql)
    assert recipe.columns or "SELECT *" not in recipe.sql, "the line below the query must read: Columns: `a`, `b`."
    assert tuple(rows.column_names) == (recipe.columns or tuple(rows.column_names))
    assert recipe.may_be_empty or rows.num_rows > 0


def test_what_the_cookbook_does_in_a_notebook(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_HOME", str(store.parent))
    (script,) = re.findall(r"^```python\n(.*?)^```", COOKBOOK.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    shown: dict[str, Any] = {}
    lines = []
    for place, line in enumerate(script.strip().splitlines()):  # a notebook shows what a line gives
        assigns = re.match(r"import |\w+ = ", line)
        lines.append(line if assigns or not line else f"shown[{place}] = {line}")
    exec("\n".join(lines), {"shown": shown})  # ours
    assert [len(found) > 0 for found in shown.values()] == [True] * 5
    wrong, means = list(shown.values())[3:]
    assert set(wrong["model_version"]) == set(MODEL_VERSIONS)
    assert not wrong["correct"].any()
    assert 0 < means["numerical_match"] < 1


def test_query_prints_rows_on_the_command_line(store: Path) -> None:
    query = "SELECT model_version FROM leaderboard('finqa_sample') ORDER BY 1"
    said = call(store.parent, "query", "--format", "csv", query)
    assert said.out.split() == ["model_version", *MODEL_VERSIONS]
