from dataclasses import replace
from pathlib import Path

import pytest

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.migrations import migrate
from eval_pipeline.store.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline.store.schemas import Column
from eval_pipeline.store.tables import (
    METRICS,
)
from eval_pipeline_tests.store.samples import (
    FINQA,
    TRACKS,
    ask,
    key_of,
    put,
)


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
