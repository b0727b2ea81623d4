"""SQLite files as others leave them: in WAL mode, with unfinished changes, in folders that nobody may write to."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from eval_pipeline.core.model import ErrorClass, Failed
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.runner import SqlRunner
from eval_pipeline.sandbox.sql.sqlite_files import settled
from eval_pipeline.sandbox.sql.sqlite_guard import GuardedSqlite
from eval_pipeline_plugins.sql_equivalence.ladder import check
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql.cases.build import count_rows
from eval_pipeline_plugins.tracks.sql.cases.source import read_databases

ROWS = 2_000


def _in_wal_mode(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE n (x INTEGER)")
    connection.execute("INSERT INTO n VALUES (1)")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return connection


def _clean(path: Path) -> int:
    _in_wal_mode(path).close()
    return 1


def _with_log(path: Path) -> int:
    """A process that is still writing: the table is in the file, its second row in the log alone."""
    with closing(_in_wal_mode(path.with_name("busy.db"))) as connection:
        connection.execute("INSERT INTO n VALUES (2)")
        for end in ("", "-wal"):
            shutil.copyfile(path.with_name(f"busy.db{end}"), path.with_name(path.name + end))
    path.with_name("busy.db").unlink()
    return 2


def _with_hot_journal(path: Path) -> int:
    """A process that was killed: rows of a change that never ended are in the file, the old ones in the journal."""
    busy = path.with_name("busy.db")
    with closing(sqlite3.connect(busy, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE n (x INTEGER)")
        connection.execute(
            f"INSERT INTO n SELECT value FROM (WITH RECURSIVE s(value) AS (SELECT 1 UNION ALL SELECT "
            f"value + 1 FROM s WHERE value < {ROWS}) SELECT value FROM s)"
        )
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE n SET x = -1")
        connection.execute("DELETE FROM n WHERE rowid % 2")
        for end in ("", "-journal"):
            shutil.copyfile(path.with_name(f"busy.db{end}"), path.with_name(path.name + end))
        connection.execute("ROLLBACK")
    busy.unlink()
    return ROWS


@pytest.fixture(params=[_clean, _with_log, _with_hot_journal], scope="module")
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    place = tmp_path_factory.mktemp("suite") / "databases"
    place.mkdir()
    rows = request.param(place / "a.sqlite")
    os.chmod(place, 0o555)
    yield place / "a.sqlite", rows
    os.chmod(place, 0o755)


def test_files_in_a_read_only_folder_are_read_whole_and_stay_as_they_are(
    file: tuple[Path, int], request: pytest.FixtureRequest
) -> None:
    path, rows = file
    before = {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in path.parent.iterdir()}
    schema = SqlSchema.from_database(path)
    assert [table.name for table in schema.tables] == ["n"]
    assert count_rows(path, schema) == rows
    runner = SqlRunner(most=1)
    try:
        found = runner.run_now(path, "SELECT count(*), min(x) FROM n")
        assert not isinstance(found, Failed), found
        assert found.rows == [(rows, 1)]
        timed = runner.time_pair_now(path, "SELECT x FROM n", "SELECT x FROM n", 1)
        assert not isinstance(timed, Failed)
    finally:
        runner.close()
    told = check("SELECT x FROM n WHERE x > 0", "SELECT x FROM n", schema, [path], dialect="sqlite").evidence
    assert told["shipped"][0] == {"database": "a.sqlite", "same": True, "error": None, "needs": [[]]}
    database = read_databases(path.parent.parent, {}).databases["a"]
    assert (database.rows, database.dialect) == (rows, "sqlite")
    assert {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in path.parent.iterdir()} == before


def test_a_copy_is_made_again_when_the_log_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with closing(_in_wal_mode(path)) as writing:
        assert settled(path) == path
        hashes = set()
        for rows in (2, 3):
            writing.execute("INSERT INTO n VALUES (2)")
            with closing(sqlite3.connect(settled(path))) as copy:
                assert copy.execute("SELECT count(*) FROM n").fetchone() == (rows,)
            (tmp_path / "databases").mkdir(exist_ok=True)
            for end in ("", "-wal"):
                shutil.copyfile(f"{path}{end}", tmp_path / f"databases/a.sqlite{end}")
            hashes.add(read_databases(tmp_path, {}).databases["a"].content_hash)
    assert len(hashes) == 2


def test_a_full_text_index_is_searched_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE VIRTUAL TABLE d USING fts5 (title)")
        made.execute("CREATE TABLE n (x INTEGER)")
        made.execute("INSERT INTO d VALUES ('the moon'), ('the sun')")
        made.commit()
    guard = GuardedSqlite(path, SqlLimits())
    assert guard.query("SELECT highlight(d, 0, '<', '>') FROM d WHERE d MATCH 'moon' ORDER BY rank").rows == [
        ("the <moon>",)
    ]
    for hostile in (
        "INSERT INTO d (d) VALUES ('rebuild')",
        "PRAGMA data_version = 1",
        "PRAGMA page_size",
        "SELECT * FROM pragma_table_info('n')",
        "CREATE VIRTUAL TABLE temp.v USING fts5vocab (main, d, row)",
    ):
        with pytest.raises(SqlError) as refused:
            guard.query(hostile)
        assert refused.value.error_class is ErrorClass.SANDBOX
    guard.close()
