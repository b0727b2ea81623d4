"""Both forms of the store have the same rows in every table, view and macro, for all shipped suites."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.store.published.query import connect_read_only

SHOWN = """
SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'store'
UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'store' AND NOT internal
"""
OF_THE_FORM = {("meta", "catalog"), ("meta", "store")}
SUITES = ("finqa_sample", "pandas_sample", "sdmx_sample", "sql_sample")


def call(home: Path, *arguments: str, **variables: str) -> None:
    command = [sys.executable, "-c", "from eval_pipeline.cli import main; main()", *arguments]
    kept = {name: value for name, value in os.environ.items() if name not in {"EVAL_DATA", "EVAL_STORE"}}
    environment = kept | {"EVAL_HOME": str(home)} | variables
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def rows(store: Path) -> dict[str, list[Any]]:
    with closing(connect_read_only(store)) as connection:
        names = [f'{schema}."{name}"' for schema, name in connection.execute(SHOWN).fetchall()
                 if (schema, name) not in OF_THE_FORM]  # fmt: skip
        # Rows of one kind and name (162 groups here) are numbered as they come, in either form.
        names[names.index('main."explain_turn"')] = "(SELECT * EXCLUDE (step) FROM explain_turn)"
        turns = connection.execute("SELECT suite, min(turn_id) FROM turn_results GROUP BY ALL").fetchall()
        pair = "'simulated-strong', 'simulated-weak'"
        for suite, turn in turns:
            names += [f"leaderboard('{suite}')", f"leaderboard_details('{suite}')"]
            names += [f"compare({pair}, '{suite}')", f"compare_details({pair}, '{suite}')"]
            names += [f"explain_turn('{turn}', 'simulated-weak')"]
        return {name: sorted(connection.execute(f"FROM {name}").fetchall(), key=repr) for name in names}


@pytest.mark.soak
def test_all_shipped_suites_have_the_same_rows_in_both(tmp_path: Path) -> None:
    home = tmp_path / "home"
    chosen = [word for suite in SUITES for word in ("--suite", suite)]
    chosen += ["--model-version", "simulated-strong", "--model-version", "simulated-weak"]
    call(home, "run", "--no-report", "--eval-date", "2026-03-01", *chosen)
    of_file = rows(home / "eval.duckdb")
    call(home, "publish", EVAL_STORE="catalog")
    of_catalog = rows(home / "eval.duckdb")
    assert of_catalog.keys() == of_file.keys()
    assert [name for name in of_file if of_file[name] != of_catalog[name]] == []
    assert sum(map(len, of_file.values())) > 10_000
