"""Judges what an agent made of a dbt project. Its text, with what to judge by, is a check that runs in the jail."""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_DIGITS = 6
_MOST_TESTS_S = 600
_OWN = (
    "{{ config(enabled=true, severity='error', fail_calc='count(*)', error_if='!= 0', warn_if='!= 0', limit=none) }}\n"
)
"""Before each test, since the agent's project may configure tests to pass; what the test itself says comes after it."""


def judge(told: Mapping[str, Any]) -> list[str]:
    """Returns what is wrong in the current folder; nothing if all is right.

    Args:
        told: `database`, its file; `setup`, a script that runs before; `tables`, by name with `seeds`, the CSV files
            any of which it has to equal, and the columns to `include` (none: all) and to `exclude`; `tests` of dbt and
            the `seeds` that they refer to, texts by name.
    """
    if told["setup"]:
        subprocess.run(["bash", "-c", told["setup"]], check=False)
    wrong = list(_tables(told["database"], told["tables"]))
    return wrong + _tests(told["tests"], told["seeds"]) if told["tests"] else wrong


def _tables(database: str, tables: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    import duckdb

    with duckdb.connect(database, read_only=True) as opened:
        for name, expected in tables.items():
            found = [_difference(opened, name, expected, text) for text in expected["seeds"]]
            if all(found):
                yield f"{name}: {found[0]}"


def _difference(opened: Any, name: str, expected: Mapping[str, Any], text: str) -> str:
    """Returns in what a table differs from a CSV file; nothing if it has the same columns and rows."""
    head, *rows = csv.reader(text.splitlines(keepends=True))
    asked = (
        "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns "
        "WHERE lower(table_name) = lower(?) ORDER BY table_schema <> 'main', table_schema, table_name"
    )
    found = opened.execute(asked, [name]).fetchall()
    if not found:
        return "there is no such table"
    place = found[0][:2]
    types = {column.lower(): kind for *where, column, kind in found if (*where,) == place}
    included = [one.lower() for one in expected["include"]]
    excluded = [one.lower() for one in expected["exclude"]]
    wanted, there = ([one for one in all_ if one not in excluded] for all_ in ([*map(str.lower, head)], sorted(types)))
    if included:
        wanted, there = ([one for one in included if one in all_] for all_ in (wanted, there))
    if sorted(wanted) != sorted(there):
        return f"it has the columns {', '.join(there)}; expected {', '.join(sorted(wanted))}"
    at = {column.lower(): number for number, column in enumerate(head)}
    opened.execute(
        "CREATE OR REPLACE TEMP TABLE expected_rows (" + ", ".join(f'"{one}" VARCHAR' for one in wanted) + ")"
    )
    if rows:
        marks = ", ".join("?" for _ in wanted)
        given = [[row[at[one]] or None for one in wanted] for row in rows if row]
        opened.executemany(f"INSERT INTO expected_rows VALUES ({marks})", given)
    texts = ", ".join(_as_text(one, types[one]) for one in wanted)
    sides = (f"SELECT {texts} FROM expected_rows", f'SELECT {texts} FROM "{place[0]}"."{place[1]}"')
    queries = [f"SELECT count(*) FROM ({one} EXCEPT ALL {two})" for one, two in (sides, sides[::-1])]
    missing, more = (opened.execute(query).fetchone()[0] for query in queries)
    return f"{missing} rows are missing, {more} are not expected" if missing or more else ""


def _as_text(column: str, kind: str) -> str:
    """Returns an expression of a value as text; nothing and an empty text are the same, as in a CSV file."""
    name = f'"{column}"'
    if kind in {"FLOAT", "DOUBLE"} or kind.startswith("DECIMAL"):
        return f"CAST(round(TRY_CAST({name} AS DOUBLE), {_DIGITS}) AS VARCHAR)"
    return f"nullif(coalesce(CAST(TRY_CAST({name} AS {kind}) AS VARCHAR), CAST({name} AS VARCHAR)), '')"


def _tests(tests: Mapping[str, str], seeds: Mapping[str, str]) -> list[str]:
    """Returns which tests are not passed; all have to be run, however the project configures them.

    Macros that a test uses are the project's own, as in ADE-bench, so that an agent can change what they do.
    """
    for folder, files in (("tests", tests), ("seeds", seeds)):
        if folder == "tests":
            shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir(exist_ok=True)
        for name, text in files.items():
            Path(folder, name).write_text(_OWN * (folder == "tests") + text, encoding="utf-8")
    chosen = ["--select", *(Path(name).stem for name in seeds)]
    commands: Sequence[list[str]] = [
        *([["dbt", "seed", *chosen]] if seeds else []),
        ["dbt", "test", "--select", "test_type:singular"],
    ]
    results = Path("target/run_results.json")
    results.unlink(missing_ok=True)  # dbt writes none if it finds nothing to do
    for command in commands:
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_MOST_TESTS_S)
    told = json.loads(results.read_text(encoding="utf-8"))["results"] if results.is_file() else []
    states = {one["unique_id"].split(".")[2]: one["status"] for one in told}
    wrong = [name for name in tests if states.get(Path(name).stem) != "pass"]
    return [f"the test {name} is not passed" for name in wrong] or ([ran.stdout[-500:]] if ran.returncode else [])


def main(told: Mapping[str, Any]) -> None:
    """Prints what is wrong, and ends with 1 if anything is."""
    wrong = judge(told)
    sys.stdout.write("\n".join(wrong))
    sys.exit(1 if wrong else 0)
