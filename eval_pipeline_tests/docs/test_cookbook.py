"""Every query of the SQL cookbook runs against a store made from the shipped suite, and gives the promised columns."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from eval_pipeline.store.query import run_query
from eval_pipeline_tests.workers import shared_folder

COOKBOOK = Path(__file__).parents[2] / "docs" / "sql-cookbook.md"
DATES = ("2026-01-14", "2026-01-15")
MODEL_VERSIONS = ("simulated-strong", "simulated-weak")

_QUERY = re.compile(r"^```sql\n(?P<sql>.*?)^```\n(?P<after>\n[^\n]+)?", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"`(\w+)`")


class Recipe(NamedTuple):
    """A query of the cookbook with the columns that the line below it names."""

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
    """A store of that form, with two dates of two simulated model versions; made once for all test workers."""
    shared = shared_folder(tmp_path_factory)
    home = shared / "cookbook-home"
    with (shared / "cookbook.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "done").exists():
            for day in DATES:
                evaluate(home, day)
            (home / "done").touch()
        if request.param == "catalog":
            home = as_catalog(home)
    return home / "eval.duckdb"


def as_catalog(home: Path) -> Path:
    """Returns a home with the same record, published as a catalog."""
    other = home.with_name("cookbook-catalog")
    if not (other / "done").exists():
        shutil.copytree(home / "record", other / "record")
        done = call(other, "publish", EVAL_STORE="catalog")
        assert done.returncode == 0, done.stderr
        (other / "done").touch()
    return other


def evaluate(home: Path, day: str) -> None:
    asked = [word for name in MODEL_VERSIONS for word in ("--model-version", name)]
    done = call(home, "run", "--no-report", "--suite", "finqa_sample", "--eval-date", day, *asked)
    assert done.returncode == 0, done.stderr


def call(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from eval_pipeline.cli import main; main()", *arguments]
    kept = {name: value for name, value in os.environ.items() if name not in {"EVAL_DATA", "EVAL_STORE"}}
    environment = kept | {"EVAL_HOME": str(home)} | variables
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_cookbook_has_queries() -> None:
    assert len(RECIPES) >= 15
    assert len({recipe.sql for recipe in RECIPES.values()}) == len(RECIPES)


@pytest.mark.parametrize("place", RECIPES)
def test_query_gives_what_the_cookbook_says(place: str, store: Path) -> None:
    recipe = RECIPES[place]
    rows = run_query(store, recipe.sql)
    assert recipe.columns, "the line below the query must read: Columns: `a`, `b`."
    assert tuple(rows.column_names) == recipe.columns
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
    command = [sys.executable, "-c", "from eval_pipeline.cli import main; main()", "query", "--format", "csv"]
    command.append("SELECT model_version FROM leaderboard('finqa_sample') ORDER BY 1")
    environment = os.environ | {"EVAL_HOME": str(store.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["model_version", *MODEL_VERSIONS]
