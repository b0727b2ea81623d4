"""Tasks that change data: scripts run on private copies, and the state that they leave is compared."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import EvalError
from eval_pipeline.sandbox.sql import SqlLimits, SqlRunner
from eval_pipeline.sandbox.sql.effects.state import Script
from eval_pipeline.tracks.sql.cases.source import Shared, read_databases
from eval_pipeline.tracks.sql.effects.judging import judge
from eval_pipeline.tracks.sql.effects.scripts import statements_of, validate_script
from eval_pipeline.tracks.sql.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.sql.helpers import answer, read, scores

GOLDEN = golden("sql_effects.yaml")
TASKS = {task["name"]: task for task in GOLDEN["tasks"]}
ENGINES = ("sqlite", "duckdb")


@contextmanager
def opened(limits: SqlLimits) -> Iterator[SqlRunner]:
    runner = SqlRunner(limits)
    try:
        yield runner
    finally:
        runner.close()


def written(folder: Path, **options: Any) -> Shared:
    place = folder / "databases" / "store"
    place.mkdir(parents=True, exist_ok=True)
    (place / "store.sql").write_text(GOLDEN["script"])
    return read_databases(folder, options)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("stores")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_HOME", str(folder / "home"))
        yield {engine: written(folder / engine, dialect=engine) for engine in ENGINES}


def raw(task: dict[str, Any], **more: Any) -> dict[str, Any]:
    told = {"check_sql": task["check"]} if "check" in task else {}
    case = {"id": task["name"], "question": "Change it.", "expected_sql": task["expected"]}
    return {**case, "may_change": task["may_change"], **told, **more}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TASKS)
def test_a_script_is_judged_by_the_state_that_it_leaves(stores: dict[str, Shared], engine: str, name: str) -> None:
    check(read(raw(task := TASKS[name]), stores[engine]), task)


def check(case: Any, task: dict[str, Any]) -> None:
    gold = case.turns[0].gold
    assert TRACK.check_gold(case) == []
    for sql in (task["expected"], *task["right"]):
        found = judge(gold, sql)
        assert (found.verdict, found.message) == ("match", ""), sql
        assert not found.outside and found.validation.is_valid
    for sql, words in task["wrong"] + task.get("outside", []):
        found = judge(gold, sql)
        assert found.verdict == "different", sql
        assert words in found.message, sql
    for sql, _ in task.get("outside", []):
        assert judge(gold, sql).outside, sql
    for sql, mode in task.get("fails", []):
        assert asyncio.run(scores(case, answer(sql)))["failure_mode"] == mode, sql


@pytest.mark.parametrize("engine", (*ENGINES, "postgres"))
def test_what_is_no_change_of_data_is_refused_before_it_runs(stores: dict[str, Shared], engine: str) -> None:
    schema = stores["duckdb"].databases["store"].schema
    for sql in GOLDEN["refused"]:
        found = validate_script(f"DELETE FROM notes; {sql}", schema, engine)
        assert not found.safety_valid and not found.is_valid, sql


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_refuse_it_too_and_no_file_is_touched(stores: dict[str, Shared], engine: str, tmp_path: Path) -> None:
    """What a name or a comment might hide from the validator: the child has limits of its own."""
    database = stores[engine].databases["store"]
    path = database.path()
    assert isinstance(path, Path)
    before = path.read_bytes()
    with opened(SqlLimits(seconds=1, memory_bytes=256 * 1024 * 1024)) as runner:
        for sql in (*GOLDEN["refused"][:11], f"ATTACH '{tmp_path}/x.db' AS x", f"VACUUM INTO '{tmp_path}/x.db'"):
            found = runner.run_script_now(path, Script(("DELETE FROM notes", sql)))
            assert found.error is not None, sql
        assert [*tmp_path.iterdir()] == []
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO notes SELECT {}, NULL FROM n"
        text = "hex(randomblob(100000))" if engine == "sqlite" else "repeat('x', 100000) || i"
        for body in ("'x'", text):
            found = runner.run_script_now(path, Script((endless.format(body),)))
            assert getattr(found, "error_class", None) or found.error, body
        found = runner.run_script_now(path, Script(("DELETE FROM notes",)))
        assert set(found.changes) == {"notes"}
    assert path.read_bytes() == before
