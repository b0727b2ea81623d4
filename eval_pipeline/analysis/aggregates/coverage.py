"""`coverage`: how many turns were planned, asked, answered, readable and scored (docs/statistics.md)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.analysis.aggregates.base import Aggregate, Row, Turns
from eval_pipeline.core.coverage import Coverage, Try, turns_reached
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import COVERAGE as TABLE
from eval_pipeline.store.tables import GENERATIONS, RECOVERY_ATTEMPTS

_READ = ("turn_id", "sample", "call_error", "stop_reason", "artefact")


def coverage_rows(turns: Turns) -> list[Row]:
    """One row."""
    scored = turns.results["correct"]
    reached = turns_reached(tries_of(turns.read))
    return [dict(Coverage.of(reached.values(), turns.planned, len(scored) - scored.null_count).columns())]


def tries_of(read: Callable[[Table, Sequence[str]], pa.Table]) -> Iterator[Try]:
    """The attempts of an evaluation in the order in which they were made; `read` gives columns of its tables."""
    for table in (GENERATIONS, RECOVERY_ATTEMPTS):
        found = read(table, _READ)
        columns = (*(found[name] for name in _READ[:3]), *(pc.is_valid(found[name]) for name in _READ[3:]))
        yield from map(Try, *(column.to_pylist() for column in columns))


def _headline(rows: Sequence[Row]) -> Mapping[str, Any]:
    return Coverage.from_row(rows[0]).columns()


COVERAGE = Aggregate(TABLE, coverage_rows, _headline, reads=(GENERATIONS, RECOVERY_ATTEMPTS))
