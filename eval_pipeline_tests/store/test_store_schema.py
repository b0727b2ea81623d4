from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.hashing import kept
from eval_pipeline.core.ids import json_hash
from eval_pipeline.store.migrations import migrate
from eval_pipeline.store.published.ddl import FORMAT, schema_sql, view_names
from eval_pipeline.store.published.memo import Memo
from eval_pipeline.store.published.publish import publish, publish_full
from eval_pipeline.store.published.snapshot import Snapshot
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.tables import (
    ATTEMPTS,
    ERRORS,
    GENERATION_PROMPTS,
    GENERATIONS,
    METRICS,
    RECOVERY_ATTEMPTS,
    RECOVERY_PROMPTS,
    TURN_ERRORS,
    all_tables,
    track_turns_table,
)
from eval_pipeline.tracks.registry import load_track, own_tracks
from eval_pipeline.tracks.scored.turns_table import turns_table
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.store.samples import DAY, FINQA, TRACKS, ask, key_of, put, put_partition, put_suite, rows
from eval_pipeline_tests.support import Lab, Puppet

MACROS = {"explain_turn", "leaderboard", "leaderboard_details", "compare", "compare_details"}
HELPERS = {
    "known_suites",
    "known_model_versions",
    "known_turns",
    "newest_evaluations",
    "evaluated_turns",
    "answered_turns",
}


@pytest.mark.always
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
    mine = "NOT internal AND database_name = 'store' AND schema_name"
    helpers = ask(out, f"SELECT view_name FROM duckdb_views() WHERE {mine} = 'meta'")
    assert {name for (name,) in helpers} == HELPERS
    views = ask(out, f"SELECT view_name, comment FROM duckdb_views() WHERE {mine} = 'main'")
    latest = {f"latest_{table.name}" for table in all_tables(TRACKS) if table.key == "partition"}
    assert {name for name, _ in views} == {*latest, "latest_partitions", "errors", "latest_errors", *view_names()}
    macros = ask(
        out,
        "SELECT function_name, comment FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal",
    )
    assert {name for name, _ in macros} == MACROS
    assert all(comment for _, comment in [*views, *macros])


def test_a_store_that_begins_as_a_copy_is_the_one_that_is_made(
    record: Record, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_FOLDER", tmp_path)  # nothing is kept there
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
    monkeypatch.setattr(Snapshot, "create", None)  # not called: the store is a copy of the one before it had rows
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


def shipped_tables() -> list[Table]:
    """Without what packages add."""
    tracks = [load_track(name) for name in sorted(own_tracks())]
    return [found for track in tracks for found in (turns_table(track), *track.turn_tables, *track.suite_tables)]


def test_whoever_changes_the_schema_says_so() -> None:
    """Code that shares a home knows by the form which is the newer one, so no two schemas may have the same."""
    known = golden("store_forms.yaml")
    (latest,) = [entry["schema"] for entry in known if entry["form"] == FORMAT]
    now = json_hash(schema_sql(shipped_tables()))
    line = f'- {{form: {FORMAT + 1}, schema: "{now}"}}'
    assert latest == now, f"the store's schema has changed: add 1 to FORMAT in ddl.py, and to store_forms.yaml {line}"
    assert max(entry["form"] for entry in known) == FORMAT
    assert len({entry["schema"] for entry in known}) == len(known)


def test_a_store_of_newer_code_is_left_alone(record: Record, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_suite(record)
    put_partition(record, key_of("a"))
    publish(record, out, TRACKS)
    put_partition(record, key_of("b"))
    newer = FORMAT + 1
    monkeypatch.setattr(f"{publish.__module__}.FORMAT", newer)
    monkeypatch.setattr("eval_pipeline.store.published.ddl.FORMAT", newer)
    assert publish(record, out, TRACKS).note == "the tables have another schema now"
    monkeypatch.undo()
    before = out.stat().st_mtime_ns
    for _ in range(2):
        with pytest.raises(StoreError, match=r"eval\.duckdb was made by a newer eval-pipeline; use that"):
            publish(record, out, TRACKS)
    assert out.stat().st_mtime_ns == before
    assert publish_full(record, out, TRACKS).full
    assert not publish(record, out, TRACKS).full, "it is this one's now"


def test_no_model_is_asked_for_what_could_not_be_published(
    small: Lab, puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = Memo((0, 0), FORMAT + 1, "", {})
    monkeypatch.setattr("eval_pipeline.workspace.runs.published_memo", lambda _: newer)
    with pytest.raises(StoreError, match="made by a newer eval-pipeline"):
        small.evaluate(upto="generations")
    assert puppet.asked == []


@pytest.mark.usefixtures("published")
def test_another_schema_rebuilds(record: Record, out: Path) -> None:
    wider = replace(FINQA, columns=(*FINQA.columns, Column("soft_match", "DOUBLE", "0 or 1; NULL: never run.")))
    done = publish(record, out, (wider,), [key_of()])
    assert done.full
    assert done.note == "the tables have another schema now"
    assert set(ask(out, "SELECT numerical_match, soft_match FROM finqa_turns")) == {(1.0, None)}
    put(record, wider, key_of(), soft_match=[0.0])
    assert publish(record, out, (wider,)).tables == ("finqa_turns",)
    narrower = replace(FINQA, columns=FINQA.columns[:-1])
    assert publish(record, out, (narrower,)).full, "a column that was dropped is left out"


def test_older_files_are_migrated(record: Record, out: Path) -> None:
    old = replace(METRICS, columns=tuple(replace(c, name="score") if c.name == "value" else c for c in METRICS.columns))
    put(record, old, key_of(), 2, score=[50.0, None])
    put(record, METRICS, key_of("beta"), value=[0.25])

    def percent_to_share(table):
        shares = [None if value is None else value / 100 for value in table.column("score").to_pylist()]
        return table.drop_columns("score").append_column("value", [shares])

    new = replace(METRICS, version=2)
    migrating = Record(record.root, {("metrics", 1): percent_to_share})
    assert migrating.read(new, key_of(), ["value", "metric"]).to_pydict() == {
        "value": [0.5, None],
        "metric": ["text", "text"],
    }
    assert "value" in migrating.known(new, key_of()) and "value" not in record.known(new, key_of())
    assert not migrating.is_current(new, key_of(), {"made": "here"})
    plain = record.read(new, key_of())
    assert plain.column("value").to_pylist() == [None, None], "without a migration, an unknown column is dropped"

    publish(migrating, out, (replace(FINQA),))
    assert ask(out, "SELECT value FROM metrics ORDER BY model_version, value") == [(None,), (None,), (0.25,)]
    put(record, new, key_of("gamma"))
    with pytest.raises(StoreError, match=r"part\.parquet was written by a newer eval-pipeline"):
        record.read(METRICS, key_of("gamma"))
    with pytest.raises(StoreError, match=r"part\.parquet was written by a newer eval-pipeline"):
        publish(record, out, TRACKS)


def test_migrations_go_step_by_step(record: Record) -> None:
    put(record, METRICS, key_of(), value=[1.0])
    steps = {
        ("metrics", version): lambda table, factor=factor: table.set_column(
            table.column_names.index("value"), "value", [[v * factor for v in table.column("value").to_pylist()]]
        )
        for version, factor in ((1, 2.0), (3, 5.0))
    }
    new = replace(METRICS, version=4)
    assert Record(record.root, steps).read(new, key_of(), ["value"]).to_pydict() == {"value": [10.0]}
    table = record.read(METRICS, key_of())
    assert migrate(table, METRICS, 1, steps).equals(table)


OF_FINQA = ("has_type2_question", "has_non_numeric_values", "plan_steps", "operations_per_turn")
OLD = replace(
    ERRORS,
    columns=(
        *ERRORS.columns[:11],
        Column("has_type2_question", "BOOLEAN", ""),
        Column("plan_steps", "BIGINT", ""),
        *ERRORS.columns[11:],
    ),
)
"""As version 0.1.0 had it, so far as it matters."""


def test_an_error_of_finqa_has_the_columns_of_its_turn_behind_the_failure_mode(record: Record, out: Path) -> None:
    put_partition(record, key_of())
    put(record, FINQA, key_of(), 2, turn_id=["finqa/c0#0"] * 2, sample=[0, 1], plan_steps=[2, 9])
    publish(record, out, TRACKS)
    shown = "SELECT turn_id, has_type2_question, has_non_numeric_values, plan_steps, operations_per_turn FROM"
    for view in ("errors", "latest_errors"):
        assert ask(out, f"{shown} {view}") == [("finqa/c0#0", True, None, 2, None)]
    names = [column.name for column in TURN_ERRORS.published_columns]
    behind = names.index("failure_mode") + 1
    expected = [*names[:behind], *OF_FINQA, *names[behind:]]
    assert [name for name, *_ in ask(out, "DESCRIBE errors")] == expected
    assert [name for name, *_ in ask(out, "DESCRIBE latest_errors")] == expected
    told = ask(out, "SELECT comment FROM duckdb_columns() WHERE table_name = 'errors' AND database_name = 'store'")
    assert all(comment for (comment,) in told)


@pytest.mark.parametrize("tracks", [TRACKS, ()], ids=["no rows of finqa", "no finqa"])
def test_errors_of_other_tracks_have_none_of_them(record: Record, out: Path, tracks: Sequence[Table]) -> None:
    put(record, ERRORS, key_of(), 2)
    publish(record, out, tracks)
    assert ask(out, f"SELECT DISTINCT {', '.join(OF_FINQA)} FROM errors") == [(None,) * 4]
    assert ask(out, "SELECT count(*) FROM errors") == [(2,)]


def test_files_of_the_first_version_are_read(record: Record, out: Path) -> None:
    put(record, OLD, key_of(), question=["why?"], failure_mode=["sign_error"])
    publish(record, out, TRACKS)
    found = ask(out, "SELECT eval_date, question, failure_mode, plan_steps FROM errors")
    assert found == [(DAY, "why?", "sign_error", None)]
    assert (record.root / "errors").is_dir()
