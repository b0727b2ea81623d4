"""Small records to write, and what a store holds, for comparing."""

import datetime as dt
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from eval_pipeline.core.model import Partition
from eval_pipeline.store.published.publish import publish_full
from eval_pipeline.store.published.query import connect_read_only
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.tables import (
    CASES,
    ERRORS,
    EVIDENCE,
    GENERATION_PROMPTS,
    GENERATIONS,
    MEASURED_EVIDENCE,
    METRICS,
    MODEL_VERSIONS,
    RECOVERY_ATTEMPTS,
    RECOVERY_PROMPTS,
    RUNS,
    TURN_RESULTS,
    TURNS,
    all_tables,
    track_turns_table,
)

FINQA = track_turns_table(
    "finqa",
    [Column("has_type2_question", "BOOLEAN", "The case mixes two questions; never NULL.")],
    [Column("plan_steps", "BIGINT", "Steps of the plan, from 0; NULL: no plan.")],
    [Column("numerical_match", "DOUBLE", "0 or 1; NULL: never run.")],
)
TRACKS = (FINQA,)
RECORD_TABLES = [source for table in all_tables(TRACKS) for source in table.record_tables()]
DAY = dt.date(2026, 1, 5)

_SAMPLES: dict[str, Any] = {
    "VARCHAR": "text",
    "BOOLEAN": True,
    "BIGINT": 3,
    "DOUBLE": 0.5,
    "DATE": DAY,
    "TIMESTAMP": dt.datetime(2026, 1, 5, 12),
    "JSON": '{"a": [1, null]}',
}


def key_of(model: str = "alpha", day: dt.date = DAY, suite: str = "finqa") -> RecordKey:
    return RecordKey.of(Partition(suite, model, day))


def rows(table: Table, count: int, **given: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Columns of `count` rows; those not given hold a sample value of their type."""
    usual = {"retired": False}  # else the leaderboard would have nobody
    return {
        column.name: given.get(column.name, [usual.get(column.name, _SAMPLES[column.type])] * count)
        for column in table.columns
    }


def put(record: Record, table: Table, key: RecordKey, count: int = 1, **given: Sequence[Any]) -> None:
    with record.writer(table, key, {"made": "here"}) as writer:
        writer.write(rows(table, count, **given))


def prompt_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def put_partition(
    record: Record,
    key: RecordKey,
    *,
    turns: int = 3,
    value: float = 1.0,
    scope: str = "full",
    prompts: Sequence[str] | None = None,
    whole: bool = False,
) -> None:
    """Tables that a run of one partition writes, or every one, of few columns that matter."""
    prompts = prompts if prompts is not None else [f"prompt {index} of {key.model_version}" for index in range(turns)]
    hashes = [prompt_hash(text) for text in prompts]
    ids = [f"{key.suite}/c{index // 2}#{index % 2}" for index in range(turns)]
    place = {
        "turn_id": ids,
        "case_id": [f"c{index // 2}" for index in range(turns)],
        "turn_index": [index % 2 for index in range(turns)],
        "sample": [0] * turns,
    }
    put(record, GENERATION_PROMPTS, key, len(prompts), prompt_hash=hashes, text=prompts)
    put(record, GENERATIONS, key, turns, **place, number=[0] * turns, prompt_hash=(hashes * turns)[:turns])
    retry = f"again, {key.model_version}"
    put(record, RECOVERY_PROMPTS, key, prompt_hash=[prompt_hash(retry)], text=[retry])
    first = {name: values[:1] for name, values in place.items()}
    put(record, RECOVERY_ATTEMPTS, key, **first, number=[1], prompt_hash=[prompt_hash(retry)])
    for table in (ERRORS, EVIDENCE, MEASURED_EVIDENCE):
        put(record, table, key, **first)
    put(record, METRICS, key, turns, **place, metric=["numerical_match"] * turns, value=[value] * turns)
    put(record, TURN_RESULTS, key, turns, **place, correct=[value == 1.0] * turns, tokens=[100] * turns)
    put(record, FINQA, key, turns, **place, numerical_match=[value] * turns)
    put(record, RUNS, key, scope=[scope])
    done = {"metrics", "turn_results", "finqa_turns", "runs"}
    for table in all_tables(TRACKS) if whole else ():
        if table.key == "partition" and not table.sources and table.name not in done:
            put(record, table, key)


def put_suite(record: Record, suite: str = "finqa", turns: int = 3) -> None:
    key = RecordKey.of_suite(suite)
    for table in RECORD_TABLES:
        if table.key == "suite" and table not in (CASES, TURNS):
            put(record, table, key)
    cases = sorted({f"c{index // 2}" for index in range(turns)})
    put(record, CASES, key, len(cases), case_id=cases)
    ids = [f"{suite}/c{index // 2}#{index % 2}" for index in range(turns)]
    put(record, TURNS, key, turns, turn_id=ids, case_id=[f"c{index // 2}" for index in range(turns)])


def put_model(record: Record, model: str = "alpha") -> None:
    put(record, MODEL_VERSIONS, RecordKey.of_model_version(model))


def filled(record: Record) -> None:
    """A suite, and two model versions that answered it."""
    put_suite(record)
    for model in ("alpha", "beta"):
        put_model(record, model)
        put_partition(record, key_of(model), whole=True)


def contents(path: Path, *, in_order: bool = False) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the public tables, sorted if their order does not matter."""
    connection = connect_read_only(path)
    try:
        found = {table.name: connection.execute(f'FROM "{table.name}"').fetchall() for table in all_tables(TRACKS)}
        return found if in_order else {name: sorted(rows, key=repr) for name, rows in found.items()}
    finally:
        connection.close()


def ask(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection: duckdb.DuckDBPyConnection = connect_read_only(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def remove_partition(record: Record, key: RecordKey) -> None:
    """Removes every file of a partition."""
    for table in RECORD_TABLES:
        if key.fits(table):
            record.remove(table, key)


def full_contents(record: Record, tmp_path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What a store built anew from the record holds."""
    other = tmp_path / "other" / "eval.duckdb"
    publish_full(record, other, TRACKS)
    return contents(other)


def beside(out: Path) -> set[str]:
    """Names of the store's file and of what lies beside it under its name."""
    return {path.name for path in out.parent.iterdir() if path.name.startswith(out.name)}
