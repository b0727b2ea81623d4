"""Tables and columns as values: name, type and meaning, from which Arrow schemas and DuckDB DDL are made."""

from dataclasses import dataclass, replace
from typing import Literal

from eval_pipeline.core.ids import json_hash

ColumnType = Literal["VARCHAR", "BOOLEAN", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "JSON"]
TableKey = Literal["partition", "suite", "model_version", "shared"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        comment: unit, range and the meaning of NULL; becomes `COMMENT ON COLUMN`.
        long: holds kilobytes a row (prompts, documents): compressed as such, where the default is slow and large.
    """

    name: str
    type: ColumnType
    comment: str
    long: bool = False


SIMULATED = Column("simulated", "BOOLEAN", "true: the responses are not a real model's; never NULL.")
RUN_ID = Column(
    "run_id", "VARCHAR", "Run that made the row as it is, a row of `runs`; NULL: made before this was noted."
)
SUITE = Column("suite", "VARCHAR", "Suite the row belongs to; never NULL.")
MODEL_VERSION = Column("model_version", "VARCHAR", "Model version the row belongs to; never NULL.")
EVAL_DATE = Column("eval_date", "DATE", "Logical date of the evaluation; never NULL.")
KEY_COLUMNS: dict[TableKey, tuple[Column, ...]] = {
    "partition": (SUITE, MODEL_VERSION, EVAL_DATE),
    "suite": (SUITE,),
    "model_version": (MODEL_VERSION,),
    "shared": (),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the record and of the published store.

    Attributes:
        columns: without the key columns, which follow from `key`.
        key: `partition` (suite, model_version, eval_date), `suite`, `model_version`, or `shared`: published without
            key columns, one row for each value of `unique`, from sources that are partitions of the record.
        sources: record tables it is filled from, where not the one of its own name.
        version: bumped when the meaning of a column changes; see `migrations.MIGRATIONS`.
        unique: of a shared table, the column that tells its rows apart.
        referenced_by: of a shared table, the table whose column `unique` keeps a row in the store.
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
        """The columns that say which partition a row is of; they come first."""
        return KEY_COLUMNS[self.key]

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Key columns, then the others."""
        return self.key_columns + self.columns

    @property
    def published_columns(self) -> tuple[Column, ...]:
        """The columns in the published store.

        There every table of evaluations says whether they are simulated, and which run made them.
        """
        return (*self.key_columns, *self.columns_of_publishing, *self.columns)

    @property
    def columns_of_publishing(self) -> tuple[Column, ...]:
        """What publishing adds, since the record need not say it of each row."""
        own = {column.name for column in self.columns}
        return tuple(c for c in (SIMULATED, RUN_ID) if c.name not in own) if self.key == "partition" else ()

    def record_tables(self) -> tuple["Table", ...]:
        """The tables of the record that this one is published from; itself where it has no sources."""
        if not self.sources:
            return (self,)
        key: TableKey = "partition" if self.key == "shared" else self.key
        return tuple(replace(self, name=source, key=key, sources=()) for source in self.sources)

    def schema_hash(self) -> str:
        """Changes with the version, and with the name or type of any column.

        A track's columns follow from its metrics, so that the version alone would not tell.
        """
        return json_hash([self.version, [[column.name, column.type] for column in self.all_columns]])
