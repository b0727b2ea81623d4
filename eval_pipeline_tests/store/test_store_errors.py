"""The view `errors`: what all tracks share, and the four columns of finqa that it has always had."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from eval_pipeline.store.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.tables import ERRORS, TURN_ERRORS
from eval_pipeline_tests.store.samples import DAY, FINQA, TRACKS, ask, key_of, put, put_partition

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


def test_an_error_of_finqa_has_the_columns_of_its_turn(record: Record, out: Path) -> None:
    put_partition(record, key_of())
    put(record, FINQA, key_of(), 2, turn_id=["finqa/c0#0"] * 2, sample=[0, 1], plan_steps=[2, 9])
    publish(record, out, TRACKS)
    shown = "SELECT turn_id, has_type2_question, has_non_numeric_values, plan_steps, operations_per_turn FROM"
    for view in ("errors", "latest_errors"):
        assert ask(out, f"{shown} {view}") == [("finqa/c0#0", True, None, 2, None)]


@pytest.mark.parametrize("tracks", [TRACKS, ()], ids=["no rows of finqa", "no finqa"])
def test_errors_of_other_tracks_have_none_of_them(record: Record, out: Path, tracks: Sequence[Table]) -> None:
    put(record, ERRORS, key_of(), 2)
    publish(record, out, tracks)
    assert ask(out, f"SELECT DISTINCT {', '.join(OF_FINQA)} FROM errors") == [(None,) * 4]
    assert ask(out, "SELECT count(*) FROM errors") == [(2,)]


def test_the_columns_are_those_of_the_table_with_finqas_behind_the_failure_mode(record: Record, out: Path) -> None:
    publish(record, out, TRACKS)
    names = [column.name for column in TURN_ERRORS.published_columns]
    behind = names.index("failure_mode") + 1
    expected = [*names[:behind], *OF_FINQA, *names[behind:]]
    assert [name for name, *_ in ask(out, "DESCRIBE errors")] == expected
    assert [name for name, *_ in ask(out, "DESCRIBE latest_errors")] == expected
    told = ask(out, "SELECT comment FROM duckdb_columns() WHERE table_name = 'errors' AND database_name = 'store'")
    assert all(comment for (comment,) in told)


def test_files_of_the_first_version_are_read(record: Record, out: Path) -> None:
    put(record, OLD, key_of(), question=["why?"], failure_mode=["sign_error"])
    publish(record, out, TRACKS)
    found = ask(out, "SELECT eval_date, question, failure_mode, plan_steps FROM errors")
    assert found == [(DAY, "why?", "sign_error", None)]
    assert (record.root / "errors").is_dir()
