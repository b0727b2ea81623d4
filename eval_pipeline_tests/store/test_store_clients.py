"""Older DuckDB clients, such as those in BI tools, read the store: real ones, in environments of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline_tests.support import Lab, Puppet

READ_ALL = """
import duckdb, json, sys
store = duckdb.connect(sys.argv[1], read_only=True)
names = store.execute("SELECT schema_name || '.' || table_name FROM duckdb_tables() UNION ALL "
                      "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal").fetchall()
rows = {name: len(store.execute(f"SELECT * FROM {name}").fetchall()) for (name,) in names}
rows["leaderboard"] = len(store.execute("FROM leaderboard('small')").fetchall())
turn = "(SELECT min(turn_id) FROM turns)"
rows["explain_turn"] = len(store.execute(f"SELECT * FROM explain_turn({turn}, 'puppet')").fetchall())
print(json.dumps(rows))
"""


def read_all(python: str, store: Path) -> dict[str, int]:
    done = subprocess.run([python, "-c", READ_ALL, str(store)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows: dict[str, int] = json.loads(done.stdout)
    return rows


@pytest.mark.parametrize("version", ["1.4.2", "1.5.6"])
def test_older_clients_read_every_table_view_and_macro(
    version: str, small: Lab, puppet: type[Puppet], tmp_path: Path
) -> None:
    uv = [sys.executable, "-m", "uv"]
    client = tmp_path / "client"
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(client)], check=True)
    python = str(client / "bin" / "python")
    installing = [*uv, "pip", "install", "--quiet", "--python", python, f"duckdb=={version}"]
    installed = subprocess.run(installing, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"DuckDB {version} cannot be installed here: {installed.stderr.strip()[-200:]}")
    small.evaluate(publish=True)
    rows = read_all(python, small.home.store)
    assert rows == read_all(sys.executable, small.home.store)
    assert rows["main.turn_results"] == 3
    assert rows["leaderboard"] == 1
