"""Reads ADE-bench (dbt-labs/ade-bench) as tasks in worlds: a dbt project on a database of DuckDB is to be mended.

Sources: README.md, docs/CONTRIBUTING.md and the task files of that repository. `setup.sh` makes the world and
`solution.sh` is the gold; tables are compared with the CSV files of `solution_seeds` after `test_setup` has run, as its
tests `AUTO_…_equality` do; other tests run by dbt. Whatever is theirs runs in the jail. `dbt deps` is left out of
scripts, as there is no network: what it fetches has to lie in the project.
"""

import base64
import json
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.importing import PlacedCase, add_import_options
from eval_pipeline_plugins.data_sets.agent_tasks.made_worlds import files_in, make_world, read_yaml
from eval_pipeline_plugins.data_sets.pandas_code.dacode import UnusableTaskError, left_out
from eval_pipeline_plugins.foreign_entries import FOREIGN, checked
from eval_pipeline_plugins.tracks.agent.cases.worlds import BUILD

DATA_FILES = ("dbt_packages.txt", "dbt_check.py")
_HERE = Path(__file__).parent
_DIFFICULTY = {"easy": 1, "medium": 2, "hard": 3}
_OURS = ".ade"
_SCRIPT_ARGUMENTS = "--db-type=duckdb --project-type=dbt"
_MOST_COMMAND = 120_000
"""Bytes that a command of the shell may have; Linux takes 131,072."""
_RUNS = "import sys, duckdb\nduckdb.connect({!r}).execute(sys.stdin.read())\n"
_BUILDS = '''"""Runs the task's setup.sh; what it is made of is not left in the world."""
import json, pathlib, shutil, subprocess
FILES = json.loads({files!r})
for name, text in FILES.items():
    pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(name).write_text(text)
ran = subprocess.run(["bash", "setup.sh", *{arguments!r}.split()], capture_output=True, text=True)
for name in {{name.split("/")[0] for name in FILES}}:
    shutil.rmtree(name) if pathlib.Path(name).is_dir() else pathlib.Path(name).unlink(missing_ok=True)
'''


class _Prompt(BaseModel):
    model_config = FOREIGN

    key: str = "base"
    prompt: str = Field(min_length=1)


class _Seed(BaseModel):
    model_config = FOREIGN

    table_name: str
    include_columns: list[str] | None = None
    exclude_columns: list[str] | None = None
    exclude_tests: list[str] | None = None
    alternates: list[str] | None = None


class _Variant(BaseModel):
    model_config = FOREIGN

    db_type: str
    db_name: str
    project_type: str
    project_name: str
    migration_directory: str | None = None


class _Task(BaseModel):
    model_config = FOREIGN

    prompts: list[_Prompt] = Field(min_length=1)
    difficulty: str = ""
    status: str = "ready"
    tags: list[str] = []
    test_setup: str | None = None
    solution_seeds: list[_Seed | str] = []
    variants: list[_Variant] = []


def read_ade_bench(source: Path, limit: int | None, given: Sequence[Path], folder: Path) -> Iterator[dict[str, Json]]:
    """Yields a case for each prompt of each task, by names of tasks, and makes their worlds in the suite's folder.

    Args:
        source: the folder `tasks`, or one task's.
        limit: maximum number of tasks.
        given: folders with `projects/dbt` and `databases/duckdb`.
        folder: folder of the suite that is made.

    Raises:
        InputError: there is no task, or a `task.yaml` is wrong; the message names file and field.
    """
    tasks = [source] if (source / "task.yaml").is_file() else sorted(path.parent for path in source.glob("*/task.yaml"))
    if not tasks:
        raise InputError([Problem(str(source), None, "", "expected folders of tasks with a task.yaml, found none")])
    shutil.copyfile(_HERE / DATA_FILES[0], folder / "packages.txt")
    add_import_options(folder, {"packages": "packages.txt", "limits": {"seconds": 600}})
    for place in tasks[:limit]:
        path = place / "task.yaml"
        task = checked(_Task, path, [("", None, read_yaml(path))], None)[0]
        with left_out(folder, place.name):
            case = _case(place, task, given, folder)
            for prompt in task.prompts:
                suffix = "" if prompt.key == "base" else f"_{prompt.key}"
                name = re.sub(r"\W+", "_", f"{case['world']}{suffix}")
                yield PlacedCase({**case, "id": name, "task": prompt.prompt.strip()}, place.name)


def _case(place: Path, task: _Task, given: Sequence[Path], folder: Path) -> dict[str, Json]:
    variant = next((one for one in task.variants if (one.db_type, one.project_type) == ("duckdb", "dbt")), None)
    if variant is None:
        found = ", ".join(f"{one.db_type} with {one.project_type}" for one in task.variants) or "none"
        raise UnusableTaskError(f"it has no variant of DuckDB with dbt, which can be run here (variants: {found})")
    if variant.migration_directory:
        raise UnusableTaskError(f"its project has to be migrated first ({variant.migration_directory})")
    if not (place / "solution.sh").is_file():
        raise UnusableTaskError("it has no solution.sh, which is its gold")
    files = _project(variant, given)
    database = f"{variant.db_name}.duckdb"
    check = _check(place, task, database)
    name = re.sub(r"\W+", "_", f"ade_{place.name}")
    told = f"A dbt project (dbt Core) on the database {database} of DuckDB. `dbt` can be run; there is no network."
    world = make_world(folder, name, files, told, {variant.db_name: {"file": database}})
    if (place / "setup.sh").is_file():
        texts = _scripts(place, "setup", database, "/world")
        built = _BUILDS.format(files=json.dumps(texts), arguments=_SCRIPT_ARGUMENTS)
        (world / BUILD).write_text(built, encoding="utf-8")
    return {
        "world": name,
        "difficulty": _DIFFICULTY.get(task.difficulty, 0),
        "tags": [*task.tags, *([] if task.status == "ready" else [f"status_{task.status}"])],
        "cluster": name,
        "gold": _gold(place, database),
        "checks": [{"command": {"run": check, "seconds": 600}}],
    }


def _project(variant: _Variant, given: Sequence[Path]) -> dict[str, Path]:
    """Returns the files of a world: the project, and the database beside it."""
    projects = [top / "projects" / "dbt" / variant.project_name for top in given]
    databases = [top / "databases" / "duckdb" / f"{variant.db_name}.duckdb" for top in given]
    project = next((one for one in projects if (one / "dbt_project.yml").is_file()), None)
    database = next((one for one in databases if one.is_file()), None)
    if project is None:
        raise UnusableTaskError(f"there is no project {variant.project_name} in projects/dbt")
    if database is None:
        raise UnusableTaskError(f"there is no {variant.db_name}.duckdb in databases/duckdb")
    files = files_in(project)
    needs = [name for name in ("packages.yml", "dependencies.yml") if name in files]
    if needs and not any(name.startswith("dbt_packages/") for name in files):
        raise UnusableTaskError(f"its project lacks packages ({needs[0]}): run `dbt deps` in {project} first")
    return {**files, database.name: database}


def _scripts(place: Path, kind: str, database: str, at: str) -> dict[str, str]:
    """Returns the script `setup` or `solution` with its files, for the folder of the world that it is put into."""
    parts = {f"{kind}.sh": place / f"{kind}.sh"}
    for part in (kind, f"{kind}s"):
        parts |= {f"{part}/{name}": path for name, path in files_in(place / part).items()}
    texts = {name: _text(path) for name, path in parts.items()}
    script = re.sub(r"(?m)^(\s*)dbt deps\b.*$", r"\1true", texts[f"{kind}.sh"])
    script = script.replace("/scripts/run_sql.sh", f"python3 {at}/run_sql.py")
    script = re.sub(r"/sage\b", at, script)
    return {**texts, f"{kind}.sh": re.sub(r"/app\b", "/world", script), "run_sql.py": _RUNS.format(database)}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableTaskError(f"{path.name} is no text: {error}") from error


def _gold(place: Path, database: str) -> list[Json]:
    scripts = _scripts(place, "solution", database, f"/world/{_OURS}")
    writes: list[Json] = [
        {"write_file": {"path": f"{_OURS}/{name}", "text": text}} for name, text in sorted(scripts.items())
    ]
    runs = f"bash {_OURS}/solution.sh {_SCRIPT_ARGUMENTS}; rm -rf {_OURS}"
    return [*writes, {"shell": runs}, {"answer": "done"}]


def _check(place: Path, task: _Task, database: str) -> str:
    """Returns the command that judges: the text of `dbt_check.py` with what is expected."""
    tables, seeds = dict[str, Any](), dict[str, str]()
    for one in task.solution_seeds:
        seed = _Seed(table_name=one) if isinstance(one, str) else one
        names = [f"solution__{name}.csv" for name in (seed.table_name, *(seed.alternates or ()))]
        texts = {name: _text(place / "seeds" / name) for name in names if (place / "seeds" / name).is_file()}
        if not texts:
            raise UnusableTaskError(f"there is no seeds/{names[0]}")
        seeds |= texts
        if "equality_test" not in (seed.exclude_tests or ()):
            columns = {"include": seed.include_columns or [], "exclude": seed.exclude_columns or []}
            tables[seed.table_name] = {"seeds": list(texts.values()), **columns}
    tests = _tests(place)
    if not tables and not tests:
        raise UnusableTaskError("nothing judges it: it has neither solution_seeds nor tests of its own")
    setup = re.sub(r"(?m)^(\s*)dbt deps\b.*$", r"\1true", task.test_setup or "")
    mentioned = {name: text for name, text in seeds.items() if any(Path(name).stem in one for one in tests.values())}
    told = {"database": database, "setup": setup, "tables": tables, "tests": tests, "seeds": mentioned}
    packed = base64.b64encode(zlib.compress(json.dumps(told).encode(), 9)).decode()
    opened = f"import base64, zlib\nmain(json.loads(zlib.decompress(base64.b64decode('{packed}'))))\n"
    command = f"python3 -P - <<'END'\n{(_HERE / DATA_FILES[1]).read_text()}\n\n{opened}END"
    if len(command) > _MOST_COMMAND:
        raise UnusableTaskError(f"what it is judged by is too large for a command: {len(command):,} bytes")
    return command


def _tests(place: Path) -> dict[str, str]:
    """Returns the tests that a task brings, without those made from its seeds and those of other systems."""
    found = {path.name: _text(path) for path in sorted((place / "tests").glob("*.sql"))}
    return {name: text for name, text in found.items() if not name.startswith("AUTO_") and _is_meant(text)}


def _is_meant(test: str) -> bool:
    told: Mapping[str, str] = dict(re.findall(r"(?m)^--\s*(db|project-type):\s*(.*)$", test))
    return all(ours in told.get(name, ours).split() for name, ours in (("db", "duckdb"), ("project-type", "dbt")))
