"""The tables of a suite: files in its folder, described as the sandbox's pandas reads them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import file_hash
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.foreign import MOST_BYTES, read_text, why_unread
from eval_pipeline.core.reading.users_tables import SEPARATORS, likely_separator
from eval_pipeline.sandbox.layers import Layer, read_layer
from eval_pipeline.sandbox.returned.outcomes import SnippetFailed
from eval_pipeline.table_comparison.contracts import Contract, WrittenContract
from eval_pipeline.tracks.options import read_options
from eval_pipeline_plugins.tracks.pandas_code import TABLES
from eval_pipeline_plugins.tracks.pandas_code.running.runner import OWN_CODE_S, sandbox

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "tables"
SUFFIXES = (".parquet", ".csv")
_SAMPLE = 65536
"""Characters by which the separator of a CSV file is told."""

_DESCRIBE = """
import json

def described(name):
    column = df[name]
    known = column.dropna()
    examples = known.astype(str).drop_duplicates().head(3).tolist()
    return {
        "name": str(name), "dtype": str(column.dtype), "missing": int(column.isna().sum()),
        "distinct": int(known.astype(str).nunique()), "examples": [text[:40] for text in examples],
    }

result = json.dumps({"rows": len(df), "columns": [described(name) for name in df.columns]})
"""


class PandasOptions(BaseModel):
    """The `options` of a suite of this track.

    Attributes:
        timed_runs: how often generated and reference code are each run; the least CPU time counts.
        ceiling_threshold: see `complexity_ceiling`.
        dialect: `polars` if answers are polars code; gold is pandas code all the same.
        packages: file in the suite's folder that lists further packages for the sandbox (`sandbox/layers.py`).
        mending_runs: how often changed code is run on a table, at most, to explain one wrong answer; 0 explains none.
        compare: in what results may differ and still be the same, see `table_comparison.contracts`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    timed_runs: int = Field(default=5, ge=1, le=100)
    ceiling_threshold: float | None = None
    dialect: Literal["pandas", "polars"] = "pandas"
    packages: str | None = Field(default=None, pattern=r"^[\w-][\w.-]*$")
    mending_runs: int = Field(default=5000, ge=0)
    compare: WrittenContract = Contract()


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table.

    Attributes:
        dtype: as printed by pandas.
        missing, distinct: numbers of missing and of distinct values.
        examples: up to three distinct values as text.
    """

    name: str
    dtype: str
    missing: int
    distinct: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SuiteTable:
    """A table of a suite.

    Attributes:
        file: path relative to the suite's folder.
        content_hash: hash of the file.
    """

    name: str
    file: str
    content_hash: str
    rows: int
    columns: tuple[TableColumn, ...]
    folder: Path = field(repr=False, compare=False)

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.folder / self.file

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class PandasShared:
    """What the cases of a suite share: its tables by name, its options, and the layer of its further packages."""

    tables: Mapping[str, SuiteTable]
    options: PandasOptions
    layer: Layer | None = None


_columns = TypeAdapter(tuple[TableColumn, ...])


def read_tables(folder: Path, options: Mapping[str, Json]) -> PandasShared:
    """Reads the Parquet and CSV files below `tables/` in a suite's folder; a suite may have none.

    Raises:
        InputError: lists every file that pandas cannot read, or whose name is not a valid name in Python.
        NoSandboxError: this machine cannot run the code that describes the tables.
        MissingPackagesError: the suite has a pandas of its own, which is not installed.
    """
    told = read_options(PandasOptions, options, f"{folder.name}/suite.yaml")
    place = folder / FOLDER
    files = sorted(path for path in place.iterdir() if path.suffix in SUFFIXES) if place.is_dir() else []
    problems = [
        Problem(str(path), None, "", f"'{path.stem}' is the name of its DataFrame, so it must be a name in Python")
        for path in files
        if not path.stem.isidentifier() or iskeyword(path.stem)
    ]
    problems += [Problem(str(path), None, "", why) for path in files if (why := _why_not_read(path))]
    if problems:
        raise InputError(problems)
    found: dict[str, SuiteTable] = {}
    layer = _layer(told, folder)
    with_pandas = layer if layer is not None and layer.version_of("pandas") else None
    for path in files:
        try:
            outcome = sandbox(with_pandas).run(_DESCRIBE, {path.stem: path}, wall_s=OWN_CODE_S)
        except ValueError as error:
            problems.append(Problem(str(path), None, "", f"pandas does not read it: {error}"))
            continue
        if isinstance(outcome, SnippetFailed):
            problems.append(Problem(str(path), None, "", f"its columns cannot be described: {outcome.message}"))
        elif path.stem in found:
            problems.append(Problem(str(path), None, "", f"there is another file for the table '{path.stem}'"))
        else:
            described = json.loads(outcome.result["value"])
            columns = _columns.validate_python(described["columns"])
            name = path.relative_to(folder).as_posix()
            found[path.stem] = SuiteTable(path.stem, name, file_hash(path), described["rows"], columns, folder)
    if problems:
        raise InputError(problems)
    return PandasShared(found, told, layer)


def _layer(options: PandasOptions, folder: Path) -> Layer | None:
    return None if options.packages is None else read_layer(folder / options.packages, find_home().packages)


def _why_not_read(path: Path) -> str | None:
    if not path.is_file():
        return "is no regular file"
    size = path.stat().st_size
    if size > MOST_BYTES:
        return f"has {size:,} bytes; expected at most {MOST_BYTES:,}"
    return _why_other_csv(path) if path.suffix == ".csv" else None


def _why_other_csv(path: Path) -> str | None:
    """Returns why pandas, with its defaults, would read a CSV file otherwise than it is meant, or not at all."""
    try:
        text = read_text(path)
    except OSError as error:
        return why_unread(error)
    separator = likely_separator(text[:_SAMPLE])
    if separator == "," or "," in text.partition("\n")[0]:
        return None
    return f"has {SEPARATORS[separator]} between its cells; expected ',', by which pandas reads it"


def table_rows(shared: PandasShared) -> dict[str, dict[str, list[Any]]]:
    """Returns a row a table of the suite: table of the record → column → its values."""
    found = list(shared.tables.values())
    return {
        TABLES.name: {
            "table_name": [one.name for one in found],
            "file": [one.file for one in found],
            "content_hash": [one.content_hash for one in found],
            "rows": [one.rows for one in found],
            "columns": [_columns.dump_json(one.columns).decode() for one in found],
        }
    }


def load_tables(tables: "Mapping[str, pa.Table]", options: Mapping[str, Json], folder: Path) -> PandasShared:
    """Restores the result of `read_tables` from the table that `table_rows` filled."""
    found = {
        row["table_name"]: SuiteTable(
            row["table_name"],
            row["file"],
            row["content_hash"],
            row["rows"],
            _columns.validate_json(row["columns"]),
            folder,
        )
        for row in tables[TABLES.name].to_pylist()
    }
    told = read_options(PandasOptions, options, f"{folder.name}/suite.yaml")
    return PandasShared(found, told, _layer(told, folder))
