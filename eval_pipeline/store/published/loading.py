"""Loads the published store as pandas DataFrames, for notebooks; implements `eval_pipeline.load`."""

from collections.abc import Iterator, Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.home import find_home
from eval_pipeline.store.published.ddl import quoted, text
from eval_pipeline.store.published.query import connect_read_only, run_query

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FIRST = "leaderboard"
TABLES = "tables"
"""The argument of `load` that returns the names of all tables and views."""
_KEY = ("suite", "model_version", "eval_date")
_LATEST = "latest_"
_NAMES = """
SELECT table_name AS name, comment FROM duckdb_tables() WHERE database_name = 'store' AND schema_name = 'main'
UNION ALL
SELECT view_name, comment FROM duckdb_views() WHERE database_name = 'store' AND schema_name = 'main' AND NOT internal
ORDER BY name
"""
_PAIRS = frozenset({"compare", "compare_details"})
"""Views over every pair of model versions; they are too large to be loaded with a suite."""


class Frames(Mapping[str, "pd.DataFrame"]):
    """The tables of a suite or an evaluation; each is read on first access and then kept."""

    def __init__(self, title: str, queries: Mapping[str, str], store: Path) -> None:
        self._title = title
        self._queries = queries
        self._store = store
        self._read: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> "pd.DataFrame":
        if name not in self._read:
            self._read[name] = frame(self._store, self._query(name))
        return self._read[name]

    def arrow(self, name: str) -> "pa.Table":
        """Returns a table as Arrow, with the exact types of the store.

        Raises KeyError for an unknown name.
        """
        return run_query(self._store, self._query(name))

    def _query(self, name: str) -> str:
        if name not in self._queries:
            raise KeyError(f"{self._title} has no '{name}'; it has {', '.join(self._queries)}")
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)

    def __repr__(self) -> str:
        return f"{self._title}: {', '.join(self._queries)}"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._queries)


def load(
    what: str | None = None, model_version: str | None = None, *, home: str | Path | None = None
) -> "pd.DataFrame | Frames":
    """Implements `eval_pipeline.load`.

    Raises:
        StoreError: there is no store, or it cannot be read.
        UsageError: the store has nothing of that name.
    """
    if model_version is not None and (what is None or "/" in what):
        raise UsageError(f"a model version needs the name of a suite before it, found {what!r}")
    store = _store(home)
    there = _There(store)
    name = f"{what}/{model_version}" if model_version is not None else what or FIRST
    if name == TABLES:
        return frame(store, _NAMES)
    if name in there.columns:
        return frame(store, f"FROM {quoted(name)}")
    suite, _, rest = name.partition("/")
    if suite not in there.evaluations:
        names = ", ".join(sorted(there.evaluations)) or "none"
        raise UsageError(
            f"the store has no table, view or suite '{name}'; suites: {names}; `load('tables')` has the rest"
        )
    return Frames(name, _of_evaluation(there, suite, rest) if rest else _of_suite(there, suite), store)


def frame(store: Path, sql: str) -> "pd.DataFrame":
    """Returns the rows of a query. Raises StoreError.

    Integers, booleans and dates keep their type where values are missing; JSON is text.
    """
    import pandas as pd
    import pyarrow as pa

    nullable: dict[Any, Any] = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    found: pd.DataFrame = run_query(store, sql).to_pandas(types_mapper=nullable.get, date_as_object=False)
    return found


class _There:
    """The contents of the store: columns of its tables and views, and dates of its evaluations."""

    def __init__(self, store: Path) -> None:
        connection = connect_read_only(store)
        try:
            self.columns: dict[str, set[str]] = {}
            query = "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'store' "
            for name, column in connection.execute(f"{query} AND schema_name = 'main' ORDER BY ALL").fetchall():
                self.columns.setdefault(name, set()).add(column)
            self._found = connection.execute(
                "SELECT suite, model_version, list(DISTINCT eval_date ORDER BY eval_date) FROM turn_results "
                "GROUP BY ALL"
            ).fetchall()
            self._latest = connection.execute(
                "SELECT suite, model_version, eval_date FROM latest_partitions"
            ).fetchall()
        finally:
            connection.close()

    @cached_property
    def evaluations(self) -> dict[str, dict[str, list[date]]]:
        """Suite → model version → dates; the date shown by the `latest_…` views comes last."""
        latest = {(suite, version): day for suite, version, day in self._latest}
        found: dict[str, dict[str, list[date]]] = {}
        for suite, version, days in self._found:
            shown = latest.get((suite, version), days[-1])
            found.setdefault(suite, {})[version] = [*(day for day in days if day != shown), shown]
        return found

    def of_dates(self) -> Iterator[str]:
        """Yields the tables and views whose rows belong to single evaluations."""
        for name, columns in self.columns.items():
            if columns.issuperset(_KEY) and not name.startswith(_LATEST):
                yield name


def _of_suite(there: _There, suite: str) -> dict[str, str]:
    """Returns queries for the newest evaluation of each model version, and for the tables of the suite as a whole."""
    found = {}
    for name, columns in there.columns.items():
        latest = f"{_LATEST}{name}"
        if "suite" not in columns or name.startswith(_LATEST) or name in _PAIRS:
            continue
        read = latest if latest in there.columns else name
        found[name] = f"SELECT t.* FROM {quoted(read)} AS t WHERE t.suite = {text(suite)}"
    if "answers" in found:  # stores made by 0.1.0 lack this view
        found["answers"] += _IS_LATEST
    return found


_IS_LATEST = (
    " AND EXISTS (FROM latest_partitions AS p WHERE p.suite = t.suite AND p.model_version = t.model_version "
    "AND p.eval_date = t.eval_date)"
)


def _of_evaluation(there: _There, suite: str, rest: str) -> dict[str, str]:
    versions = there.evaluations[suite]
    version, _, last = rest.rpartition("/")
    try:
        day = date.fromisoformat(last) if version else None
    except ValueError:
        day = None
    if day is None:
        version = rest
    if version not in versions:
        raise UsageError(f"{suite} has no evaluation of '{version}'; it has {', '.join(sorted(versions))}")
    if day is not None and day not in versions[version]:
        days = ", ".join(str(found) for found in sorted(versions[version]))
        raise UsageError(f"{version} has not been evaluated on {suite} on {day}; dates: {days}")
    shown = day or versions[version][-1]
    key = f"t.suite = {text(suite)} AND t.model_version = {text(version)} AND t.eval_date = DATE {text(str(shown))}"
    return {name: f"SELECT t.* FROM {quoted(name)} AS t WHERE {key}" for name in there.of_dates()}


def _store(home: str | Path | None) -> Path:
    if home is None:
        return find_home().store
    place = Path(home).expanduser().absolute()
    return place / "eval.duckdb" if place.is_dir() else place
