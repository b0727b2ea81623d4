"""Older DuckDB clients and other drivers, such as those in BI tools, read the store: in environments of their own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline_tests.support import Lab, Puppet

MACROS = """
calls = ["leaderboard('small')", "leaderboard_details('small')", "compare('puppet', 'puppet', 'small')"]
calls += [f"explain_turn('{turn}', 'puppet')" for turn in ("small/alpha#0",)]
unknown = ["leaderboard('smal')", "compare('puppet', 'pupet', 'small')", "explain_turn('small/alpha#9', 'puppet')"]
"""

READ_ALL = f"""
import duckdb, json, sys
{MACROS}
store = duckdb.connect(sys.argv[1], read_only=True)
names = store.execute("SELECT schema_name || '.' || table_name FROM duckdb_tables() UNION ALL "
                      "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal").fetchall()
told = {{name: len(store.execute(f"SELECT * FROM {{name}}").fetchall()) for name in [n for (n,) in names] + calls}}
for call in unknown:
    try:
        told[call] = len(store.execute(f"FROM {{call}}").fetchall())
    except duckdb.Error as error:
        told[call] = str(error)
print(json.dumps(told))
"""

ADBC = f"""
import json, sys
from adbc_driver_duckdb import dbapi
{MACROS}
told = {{}}
with dbapi.connect(sys.argv[1]) as connection, connection.cursor() as cursor:
    for name in ["leaderboard", "answers", "turn_results", *calls]:
        cursor.execute(f"SELECT * FROM {{name}}")
        told[name] = cursor.fetch_arrow_table().num_rows
print(json.dumps(told))
"""

SQLALCHEMY = """
import json, sys
import sqlalchemy as sa
engine = sa.create_engine(f"duckdb:///{sys.argv[1]}", connect_args={"read_only": True})
found = sa.inspect(engine)
views, tables = found.get_view_names(), found.get_table_names()
board = sa.Table("leaderboard", sa.MetaData(), autoload_with=engine)
with engine.connect() as connection:
    rows = [list(row) for row in connection.execute(sa.select(board.c.suite, board.c.turns, board.c.accuracy))]
print(json.dumps({"views": views, "tables": tables, "rows": rows, "columns": list(board.c.keys())}))
"""


def client(folder: Path, *packages: str) -> str:
    """The Python of a new environment with these packages."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    python = str(folder / "bin" / "python")
    installing = [*uv, "pip", "install", "--quiet", "--python", python, *packages]
    installed = subprocess.run(installing, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"{', '.join(packages)} cannot be installed here: {installed.stderr.strip()[-200:]}")
    return python


def told(python: str, script: str, store: Path) -> dict[str, Any]:
    done = subprocess.run([python, "-c", script, str(store)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_clients_from_the_oldest_on_and_other_drivers_read_it(small: Lab, puppet: type[Puppet], tmp_path: Path) -> None:
    small.evaluate(publish=True)
    ours = told(sys.executable, READ_ALL, small.home.store)
    oldest = client(tmp_path / "oldest", "duckdb==1.4.0")
    drivers = ("adbc-driver-manager", "pyarrow", "duckdb-engine==0.17.0", "sqlalchemy<1.5")
    other = client(tmp_path / "drivers", "duckdb==1.5.6", *drivers)
    assert told(oldest, READ_ALL, small.home.store) == told(other, READ_ALL, small.home.store) == ours
    assert ours["main.turn_results"] == ours["main.answers"] == 3
    assert ours["leaderboard('small')"] == ours["main.leaderboard"] == 1
    assert ours["explain_turn('small/alpha#0', 'puppet')"] > 5
    assert "there is no suite 'smal'; there are: small" in str(ours["leaderboard('smal')"])
    assert "there is no model version 'pupet'" in str(ours["compare('puppet', 'pupet', 'small')"])
    assert "there is no turn 'small/alpha#9'" in str(ours["explain_turn('small/alpha#9', 'puppet')"])

    adbc = told(other, ADBC, small.home.store)
    assert (adbc["leaderboard"], adbc["answers"], adbc["leaderboard('small')"]) == (1, 3, 1)
    found = told(other, SQLALCHEMY, small.home.store)
    assert {"leaderboard", "compare", "explain_turn", "answers"} <= set(found["views"])
    assert "turn_results" in found["tables"]
    assert found["rows"] == [["small", 3, 1.0]]
