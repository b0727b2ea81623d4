"""Declarations of tables and columns, from which Arrow schemas and DuckDB DDL are generated."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from eval_pipeline.core.ids import json_hash

ColumnType = Literal["VARCHAR", "BOOLEAN", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "JSON"]
TableKey = Literal["partition", "evaluation", "suite", "model_version", "shared"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        comment: unit, range and meaning of NULL; becomes `COMMENT ON COLUMN`.
        long: whether values are kilobytes long (prompts, documents); they then get another compression than the
            default, which is slow and ineffective for long texts.
    """

    name: str
    type: ColumnType
    comment: str
    long: bool = False


SIMULATED = Column("simulated", "BOOLEAN", "true: the responses are not from a real model; never NULL.")
RUN_ID = Column(
    "run_id", "VARCHAR", "Run that last changed the row (see `runs`); NULL: the row is older than this column."
)
SUITE = Column("suite", "VARCHAR", "Suite the row belongs to; never NULL.")
MODEL_VERSION = Column("model_version", "VARCHAR", "Model version the row belongs to; never NULL.")
EVAL_DATE = Column("eval_date", "DATE", "Logical date of the evaluation; never NULL.")
EVALUATION_ID = Column("evaluation_id", "VARCHAR", "Evaluation the row belongs to (see `evaluations`); never NULL.")
EARLIER_SCHEMA = "earlier."
"""Beginning of the names of tables in the schema of earlier evaluations."""
KEY_COLUMNS: dict[TableKey, tuple[Column, ...]] = {
    "partition": (SUITE, MODEL_VERSION, EVAL_DATE),
    "evaluation": (SUITE, MODEL_VERSION, EVAL_DATE, EVALUATION_ID),
    "suite": (SUITE,),
    "model_version": (MODEL_VERSION,),
    "shared": (),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the record and of the published store.

    Attributes:
        columns: columns without the key columns, which follow from `key`.
        key: `partition` (suite, model_version, eval_date), `suite`, `model_version`, or `shared`: published without key
            columns, one row for each value of `unique`, from sources that are partitions of the record. The published
            tables of earlier evaluations have `evaluation` (also evaluation_id).
        sources: record tables it is filled from, if not from the one of the same name.
        version: raised when the meaning of a column changes; see `migrations.MIGRATIONS`.
        unique: for a shared table, the column that identifies its rows.
        referenced_by: for a shared table, the table that uses its rows; a row stays in the store as long as the column
            `unique` of that table refers to it.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: TableKey = "partition"
    sources: tuple[str, ...] = ()
    version: int = 1
    unique: str = ""
    referenced_by: str = ""

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The columns that identify a row's partition; they come first."""
        return KEY_COLUMNS[self.key]

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Key columns, followed by the others."""
        return self.key_columns + self.columns

    @property
    def published_columns(self) -> tuple[Column, ...]:
        """The table's columns in the published store.

        Every published table of evaluations also has columns for whether they are simulated and which run made them.
        """
        return (*self.key_columns, *self.columns_of_publishing, *self.columns)

    @property
    def columns_of_publishing(self) -> tuple[Column, ...]:
        """Columns added by publishing; the record does not repeat them in each row."""
        own = {column.name for column in self.columns}
        return (
            tuple(c for c in (SIMULATED, RUN_ID) if c.name not in own)
            if self.key in {"partition", "evaluation"}
            else ()
        )

    def record_tables(self) -> tuple["Table", ...]:
        """Returns the record tables from which this one is published: its sources, or itself if it has none."""
        if not self.sources:
            return (self,)
        key: TableKey = "partition" if self.key in {"shared", "evaluation"} else self.key
        return tuple(replace(self, name=source, key=key, sources=()) for source in self.sources)

    def of_earlier(self) -> "Table":
        """Returns the published table with the rows of earlier evaluations, filled from the same sources."""
        return replace(
            self,
            name=f"{EARLIER_SCHEMA}{self.name}",
            key="evaluation" if self.key == "partition" else self.key,
            sources=self.sources or (self.name,),
            referenced_by=self.referenced_by and f"{EARLIER_SCHEMA}{self.referenced_by}",
        )

    def schema_hash(self) -> str:
        """Returns a hash that changes with the version and with the name or type of any column.

        A track's columns depend on its metrics, so the version alone would not be enough.
        """
        return _schema_hash(self.version, tuple((column.name, column.type) for column in self.all_columns))


@lru_cache(512)
def _schema_hash(version: int, columns: tuple[tuple[str, str], ...]) -> str:
    return json_hash([version, columns])


TURN_ID = Column("turn_id", "VARCHAR", "Public id of the turn, `<suite>/<case>#<index>`; never NULL.")
CASE_ID = Column("case_id", "VARCHAR", "Id of the case (conversation) within the suite; never NULL.")
TURN_INDEX = Column("turn_index", "BIGINT", "Position of the turn in its conversation, from 0; never NULL.")
SAMPLE = Column(
    "sample", "BIGINT", "Number of the answer among `samples_per_turn` independent ones, from 0; never NULL."
)
NUMBER = Column("number", "BIGINT", "0 for the first attempt, 1 and more for recovery attempts; never NULL.")
QUESTION = Column("question", "VARCHAR", "What the turn asks, as in the suite; never NULL.")
EXPECTED = Column("expected", "VARCHAR", "The right answer as text; NULL: the track has none.")
ANSWER = Column("answer", "VARCHAR", "The final attempt's answer as text; NULL: no attempt ran.")
CORRECT = Column(
    "correct", "BOOLEAN", "The track's primary metric on the final attempt; NULL: the turn could not be scored."
)
COMPLEXITY = Column(
    "complexity",
    "BIGINT",
    "Complexity of the turn by the track's first measure, in steps, from 0; NULL: the track has none.",
)
INPUT_TOKENS = Column(
    "input_tokens", "BIGINT", "Tokens sent in all attempts, including cache reads and writes; NULL: not reported."
)
OUTPUT_TOKENS = Column("output_tokens", "BIGINT", "Tokens received in all attempts; NULL: not reported.")
USD = Column("usd", "DOUBLE", "US dollars of all attempts at the prices of the day of the call; NULL: no known price.")
LATENCY_MS = Column(
    "latency_ms", "DOUBLE", "Milliseconds of the successful calls, summed over all attempts; NULL: unknown."
)
ATTEMPT_COUNT = Column(
    "attempts", "BIGINT", "Number of attempts, including the first, from 1; NULL: no attempt was made."
)
TAGS = Column("tags", "JSON", "List of the case's tags; an empty list for none.")
