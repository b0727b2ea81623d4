"""ADE-bench as tasks in worlds: what becomes of a task, what is left out, and the program that judges tables."""

import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.importing import take_import_options, take_left_out
from eval_pipeline_plugins.data_sets.agent_tasks import dbt_check
from eval_pipeline_plugins.data_sets.agent_tasks.ade_bench import read_ade_bench
from eval_pipeline_plugins.data_sets.agent_tasks.dbt_check import judge
from eval_pipeline_plugins.tracks.agent.track import TRACK
from eval_pipeline_tests import outside
from eval_pipeline_tests.plugins.data_sets.ade_specimen import write_ade
from eval_pipeline_tests.support import Lab

SAMPLE = outside.PUBLIC / "agents" / "ade_bench" / "tasks"


def read(folder: Path, source: Path | None = None) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The cases, and why others are none."""
    made = folder / "made"
    made.mkdir()
    return [dict(one) for one in read_ade_bench(source or folder / "tasks", None, [folder / "shared"], made)], (
        take_left_out(made)
    )


def test_each_prompt_of_a_task_is_a_case_in_the_world_that_its_setup_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_ade(tmp_path)
    cases, left_out = read(tmp_path)
    assert left_out == {}
    assert [(one["id"], one["world"], one["cluster"], one["task"]) for one in cases] == [
        ("ade_shop001", "ade_shop001", "ade_shop001", "Rename the model doubled to twice."),
        ("ade_shop001_hard", "ade_shop001", "ade_shop001", "Give doubled a better name (twice)."),
    ]
    writes = {one["write_file"]["path"]: one["write_file"]["text"] for one in cases[0]["gold"][:-2]}
    assert set(writes) == {".ade/solution.sh", ".ade/solutions/twice.sql", ".ade/run_sql.py"}
    assert "cat /world/.ade/solutions/twice.sql" in writes[".ade/solution.sh"]
    options = take_import_options(tmp_path / "made")
    built = (tmp_path / "made" / "worlds" / "ade_shop001" / "build.py").read_text()
    assert "/world/setup/changes.patch" in built and "dbt deps" not in built and "/scripts/" not in built
    monkeypatch.setenv("EVAL_HOME", str(tmp_path / "home"))
    shared = TRACK.read_shared(tmp_path / "made", options)
    read_cases = [TRACK.read_case(case, "ade", "cases.jsonl", 1, shared) for case in cases]
    world = read_cases[0].context.world
    assert world.layer is not None and world.layer.version_of("dbt-core") and world.layer.version_of("dbt-duckdb")
    assert world.files == {"shop": ("shop.duckdb", False)}
    assert "solution" not in " ".join(path.name for path in (world.source / "files").rglob("*"))


def changed(folder: Path, name: str, old: str, new: str) -> None:
    (folder / name).write_text((folder / name).read_text().replace(old, new))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda top: (top / "tasks/shop001/solution.sh").unlink(), "it has no solution.sh, which is its gold"),
        (lambda top: (top / "shared/databases/duckdb/shop.duckdb").unlink(), "there is no shop.duckdb in databases"),
        (lambda top: changed(top, "tasks/shop001/task.yaml", "project_name: shop}", "project_name: f1}"), "project f1"),
        (
            lambda top: changed(top, "tasks/shop001/task.yaml", "db_type: duckdb", "db_type: big"),
            "(variants: snowflake",
        ),
        (lambda top: (top / "tasks/shop001/seeds/solution__twice.csv").unlink(), "no seeds/solution__twice.csv"),
        (lambda top: (top / "shared/projects/dbt/shop/packages.yml").write_text("packages: []"), "run `dbt deps` in"),
        (lambda top: (top / "tasks/shop001/solutions/twice.sql").write_bytes(b"\xff"), "twice.sql is no text"),
    ],
)
def test_what_cannot_be_carried_is_left_out_by_name(tmp_path: Path, change: Any, why: str) -> None:
    write_ade(tmp_path)
    change(tmp_path)
    cases, left_out = read(tmp_path)
    assert cases == [] and list(left_out) == ["shop001"] and why in left_out["shop001"]


@pytest.mark.parametrize(
    ("text", "place"),
    [("prompts: [", ":2: is no YAML"), ("task_id: x\n", "prompts: "), ("prompts: [{key: base}]", "prompts.0.prompt: ")],
)
def test_a_damaged_task_is_one_sentence(tmp_path: Path, text: str, place: str) -> None:
    file = write_ade(tmp_path) / "task.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        read(tmp_path)
    (problem,) = raised.value.problems
    assert str(file) in str(problem) and place in str(problem)


@outside.needs(SAMPLE)
def test_real_tasks_without_their_projects_are_left_out_by_name(tmp_path: Path) -> None:
    cases, left_out = read(tmp_path, SAMPLE)
    assert cases == [] and set(left_out) == {"f1002", "simple001", "simple002"}


@pytest.mark.parametrize("runs", [True, False])
def test_only_what_dbt_says_now_passes_its_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: bool) -> None:
    """An agent may leave results of its own, and a project in which no test is found."""
    told = '{"results": [{"unique_id": "test.shop.none_gone", "status": "pass"}]}'
    results, program = tmp_path / "target" / "run_results.json", tmp_path / "dbt"
    results.parent.mkdir()
    results.write_text(told)
    program.write_text(f"#!/bin/sh\necho '{told}' > {results}\n" if runs else "#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    asked = {"database": "", "setup": "", "tables": {}, "tests": {"none_gone.sql": "select 1"}, "seeds": {}}
    monkeypatch.setattr(dbt_check, "_tables", lambda *told: ())
    assert judge(asked) == ([] if runs else ["the test none_gone.sql is not passed"])
    assert "error_if='!= 0'" in (tmp_path / "tests" / "none_gone.sql").read_text()


SEED = 'id,"total",day,note\n1,2.5,2026-01-02,\n2,1000000,2026-01-03,"a, b"\n'
ROWS = ("(2, 1e6, DATE '2026-01-03', 'a, b')", "(1, 2.5000000001, DATE '2026-01-02', '')")
ZERO = "(7, 0.0, DATE '2026-01-02', '')"
TABLES: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "the same": (ROWS, {}, ""),
    "another number": ((ROWS[0], "(1, 2.51, DATE '2026-01-02', '')"), {}, "1 rows are missing, 1 are not expected"),
    "another note, left out": (("(2, 1e6, DATE '2026-01-03', 'x')", ROWS[1]), {"exclude": ["NOTE"]}, ""),
    "another day, not looked at": (("(2, 1e6, DATE '2026-01-04', 'x')", ROWS[1]), {"include": ["Id", "total"]}, ""),
    "a row twice": ((*ROWS, ROWS[1]), {}, "0 rows are missing, 1 are not expected"),
    "the alternate": ((ZERO,), {"seeds": [SEED, "id,total,day,note\n7,0,2026-01-02,\n"]}, ""),
    "a column too many": ((ZERO,), {"seeds": ["id,total,day\n7,0,2026-01-02\n"]}, "it has the columns day, id, note"),
}


PLAIN: dict[str, Any] = {"seeds": [SEED], "include": [], "exclude": []}


def fill(opened: duckdb.DuckDBPyConnection) -> None:
    types = "id INTEGER, total DOUBLE, day DATE, note VARCHAR"
    opened.execute("CREATE SCHEMA other")
    for name, (rows, _, _) in TABLES.items():
        opened.execute(f'CREATE TABLE other."{name}" ({types}); INSERT INTO other."{name}" VALUES {", ".join(rows)}')


def test_a_table_is_compared_with_a_seed() -> None:
    with duckdb.connect() as opened:
        fill(opened)
        for name, (_, further, why) in TABLES.items():
            asked = PLAIN | further
            told = dbt_check._difference(opened, name.upper(), asked, asked["seeds"][-1])
            assert told.startswith(why) and bool(told) is bool(why), name


def test_tables_are_compared_with_the_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as opened:
        fill(opened)
    monkeypatch.chdir(tmp_path)
    tables = {name.upper(): PLAIN | further for name, (_, further, _) in TABLES.items()} | {"gone": PLAIN}
    told = {"database": "shop.duckdb", "setup": "touch ran", "tables": tables, "tests": {}, "seeds": {}}
    found = dict(one.split(": ", 1) for one in judge(told))
    assert (tmp_path / "ran").exists()
    assert found.pop("gone") == "there is no such table"
    wrong = {name.upper(): why for name, (_, _, why) in TABLES.items() if why}
    assert set(found) == set(wrong)
    assert all(found[name].startswith(why) for name, why in wrong.items()), found


def test_without_its_packages_a_suite_is_made_and_no_gold_is_checked(lab: Lab, tmp_path: Path) -> None:
    write_ade(tmp_path)
    ran = lab.cli(
        "import", "ade-bench", str(tmp_path / "tasks"), "--shared", str(tmp_path / "shared"), "--suite", "ade"
    )
    assert ran.code == 0, ran.text
    assert "2 cases" in ran.text and "`eval-pipeline packages install --suite ade` does that" in ran.text
