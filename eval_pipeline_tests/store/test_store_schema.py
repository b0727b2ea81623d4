from pathlib import Path

import pytest

from eval_pipeline.core import kept
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.store.ddl import FORMAT, schema_sql, view_names
from eval_pipeline.store.publish import publish, publish_full
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.snapshot import Snapshot
from eval_pipeline.store.tables import (
    ATTEMPTS,
    GENERATION_PROMPTS,
    GENERATIONS,
    RECOVERY_ATTEMPTS,
    RECOVERY_PROMPTS,
    all_tables,
    track_turns_table,
)
from eval_pipeline.tracks.abilities import suite_tables_of, turn_tables_of
from eval_pipeline.tracks.registry import TRACKS, load_track
from eval_pipeline.tracks.turns_table import turns_table
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.store import samples
from eval_pipeline_tests.store.samples import (
    ask,
    key_of,
    put_partition,
    put_suite,
    rows,
)

MACROS = {"explain_turn", "leaderboard", "leaderboard_details", "compare", "compare_details"}
HELPERS = {"known_suites", "known_model_versions", "known_turns", "evaluated_turns", "answered_turns", "turn_costs"}


@pytest.fixture(autouse=True)
def made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test makes its first empty store, and later ones are copies of that."""
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr(kept, "_FOLDER", tmp_path / "kept")


def test_every_table_and_column_has_its_comment(record: Record, out: Path) -> None:
    publish(record, out, samples.TRACKS)
    tables = dict(ask(out, "SELECT table_name, comment FROM duckdb_tables() WHERE schema_name = 'main'"))
    assert tables == {table.name: table.comment for table in all_tables(samples.TRACKS)}
    columns = ask(
        out,
        "SELECT table_name, column_name, data_type, c.comment FROM duckdb_columns() AS c JOIN duckdb_tables() AS t "
        "USING (database_name, schema_name, table_name) WHERE schema_name = 'main' AND database_name = 'store' "
        "ORDER BY table_name, column_index",
    )
    declared = [
        (table.name, column.name, column.type, column.comment)
        for table in sorted(all_tables(samples.TRACKS), key=lambda table: table.name)
        for column in table.published_columns
    ]
    assert columns == declared
    mine = "NOT internal AND database_name = 'store' AND schema_name"
    helpers = ask(out, f"SELECT view_name FROM duckdb_views() WHERE {mine} = 'meta'")
    assert {name for (name,) in helpers} == HELPERS
    views = ask(out, f"SELECT view_name, comment FROM duckdb_views() WHERE {mine} = 'main'")
    latest = {f"latest_{table.name}" for table in all_tables(samples.TRACKS) if table.key == "partition"}
    assert {name for name, _ in views} == {*latest, "latest_partitions", "errors", "latest_errors", *view_names()}
    macros = ask(
        out,
        "SELECT function_name, comment FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal",
    )
    assert {name for name, _ in macros} == MACROS
    assert all(comment for _, comment in [*views, *macros])


def test_a_store_that_begins_as_a_copy_is_the_one_that_is_made(
    record: Record, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "duckdb_tables()": "sql, comment",
        "duckdb_columns()": "table_name, column_index, column_name, data_type, column_default, is_nullable, comment",
        "duckdb_views()": "sql, comment",
        "duckdb_functions()": "macro_definition, parameters, comment",
        "meta.store": "schema_hash",
    }

    def contents() -> dict[str, list[tuple[object, ...]]]:
        mine = "WHERE database_name = 'store'"
        return {
            of: ask(out, f"SELECT {columns} FROM {of} {mine if of.endswith('()') else ''} ORDER BY ALL")
            for of, columns in told.items()
        }

    publish(record, out, samples.TRACKS)
    made = contents()
    out.unlink()
    monkeypatch.setattr(Snapshot, "create", None)  # not called: the store is a copy of the one before it had rows
    publish(record, out, samples.TRACKS)
    assert contents() == made
    assert all(made.values())


@pytest.mark.parametrize("table", all_tables(samples.TRACKS), ids=lambda table: table.name)
def test_comments_say_what_null_means(table) -> None:
    for column in table.columns:
        known = ("NULL", "empty for none", "empty list for none", "empty object for none", "empty where")
        assert any(word in column.comment for word in known), column.name
        assert column.comment.endswith(".")


def test_track_columns_must_differ() -> None:
    with pytest.raises(ValueError, match="finqa_turns would have more than one column named correct"):
        track_turns_table("finqa", [], [], [Column("Correct", "DOUBLE", "")])


def test_sources_of_a_table_are_tables_of_their_own() -> None:
    assert [table.name for table in ATTEMPTS.record_tables()] == ["generations", "recovery_attempts"]
    assert {table.key for table in (GENERATIONS, RECOVERY_ATTEMPTS, GENERATION_PROMPTS, RECOVERY_PROMPTS)} == {
        "partition"
    }
    assert rows(GENERATIONS, 1).keys() == {column.name for column in ATTEMPTS.columns}


def shipped_tables() -> list[Table]:
    """Without what packages add."""
    tracks = [load_track(name) for name in sorted(TRACKS)]
    return [
        found for track in tracks for found in (turns_table(track), *turn_tables_of(track), *suite_tables_of(track))
    ]


def test_whoever_changes_the_schema_says_so() -> None:
    """Code that shares a home knows by the form which is the newer one, so no two schemas may have the same."""
    known = golden("store_forms.yaml")
    (latest,) = [entry["schema"] for entry in known if entry["form"] == FORMAT]
    assert latest == json_hash(schema_sql(shipped_tables())), (
        f"the schema of the store has changed: add 1 to FORMAT in store/ddl.py and a line for {FORMAT + 1} to the file"
    )
    assert max(entry["form"] for entry in known) == FORMAT
    assert len({entry["schema"] for entry in known}) == len(known)


def test_a_store_of_newer_code_is_left_alone(record: Record, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_suite(record)
    put_partition(record, key_of("a"))
    publish(record, out, samples.TRACKS)
    put_partition(record, key_of("b"))
    newer = FORMAT + 1
    monkeypatch.setattr(f"{publish.__module__}.FORMAT", newer)
    monkeypatch.setattr("eval_pipeline.store.ddl.FORMAT", newer)
    assert publish(record, out, samples.TRACKS).note == "the tables have another schema now"
    monkeypatch.undo()
    before = out.stat().st_mtime_ns
    for _ in range(2):
        with pytest.raises(StoreError, match=r"eval\.duckdb was made by a newer eval-pipeline; publish with"):
            publish(record, out, samples.TRACKS)
    assert out.stat().st_mtime_ns == before
    assert publish_full(record, out, samples.TRACKS).full
    assert not publish(record, out, samples.TRACKS).full, "it is this one's now"
