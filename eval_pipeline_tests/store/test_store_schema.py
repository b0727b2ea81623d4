from pathlib import Path

import pytest

from eval_pipeline.store.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Column
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
from eval_pipeline_tests.empty_stores import EmptyStores
from eval_pipeline_tests.store.samples import (
    TRACKS,
    ask,
    rows,
)


def test_every_table_and_column_has_its_comment(record: Record, out: Path) -> None:
    publish(record, out, TRACKS)
    tables = dict(ask(out, "SELECT table_name, comment FROM duckdb_tables() WHERE schema_name = 'main'"))
    assert tables == {table.name: table.comment for table in all_tables(TRACKS)}
    columns = ask(
        out,
        "SELECT table_name, column_name, data_type, c.comment FROM duckdb_columns() AS c JOIN duckdb_tables() AS t "
        "USING (database_name, schema_name, table_name) WHERE schema_name = 'main' AND database_name = 'store' "
        "ORDER BY table_name, column_index",
    )
    declared = [
        (table.name, column.name, column.type, column.comment)
        for table in sorted(all_tables(TRACKS), key=lambda table: table.name)
        for column in table.published_columns
    ]
    assert columns == declared
    views = ask(out, "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal AND database_name = 'store'")
    latest = {f"latest_{table.name}" for table in all_tables(TRACKS) if table.key == "partition"}
    assert {name for name, _ in views} == {*latest, "latest_partitions", "errors", "latest_errors"}
    macros = ask(
        out,
        "SELECT function_name, comment FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal",
    )
    assert {name for name, _ in macros} == {"explain_turn", "leaderboard", "compare"}
    assert all(comment for _, comment in [*views, *macros])


def test_the_empty_store_that_other_tests_copy_is_the_one_that_is_made(
    record: Record, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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

    publish(record, out, TRACKS)
    made = contents()
    out.unlink()
    monkeypatch.setattr(Snapshot, "create", EmptyStores(tmp_path).create)
    publish(record, out, TRACKS)
    assert contents() == made
    assert all(made.values())


@pytest.mark.parametrize("table", all_tables(TRACKS), ids=lambda table: table.name)
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
