"""Decides whether two queries mean the same, by the first of several steps that can tell (docs/sql-equivalence.md)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from sqlglot.dialects.dialect import Dialect

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.sql.errors import SqlError, SqlFaultError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.places import LivePlace, place_to_text
from eval_pipeline.sandbox.sql.runner import patience_with, shared_processes
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.text import identical
from eval_pipeline_plugins.sql_equivalence.told import schema_to_json

Verdict = Literal["equivalent", "different", "agreed", "weakly_agreed", "undecided"]
Rung = Literal["identical", "proved", "refuted", "agreed", "weakly_agreed", "undecided"]

_SEARCH = "eval_pipeline_plugins.sql_equivalence.search.search"
_PRELOAD = ("duckdb", _SEARCH)
_SOFT_SHARE = 0.8
"""Share of the time limit that one query on a given database may take; the process is killed at the full limit."""
_VALUES: dict[Verdict, float] = {"equivalent": 1.0, "agreed": 1.0, "weakly_agreed": 1.0, "different": 0.0}

_log = logging.getLogger(__name__)
_schema_text = lru_cache(maxsize=32)(schema_to_json)


@dataclass(frozen=True, slots=True)
class Equivalence:
    """The result of comparing two queries.

    Attributes:
        verdict: `equivalent` (same text, or proved), `different` (refuted), `agreed` (the same on every database tried,
            which is no proof) or `undecided`.
        rung: the step ("rung" of the ladder) that decided.
        evidence: JSON values. `reason`: a sentence; `databases`: how many were compared; `shipped`: for each given
            database whether results were the `same` (None if they could not be compared, with `error`);
            `counterexample`: tables with rows, and both results; `fits_data`: whether they also differ on a generated
            database that fits the statistics of the given one (None if no given database has the same results);
            `error`: the engine's last error; `engine`, `translated_from`: where the queries ran, and from which dialect
            they had to be translated; `contradicted_proof`: a rewriting rule is wrong.
    """

    verdict: Verdict
    rung: Rung
    evidence: Mapping[str, Any]

    @property
    def value(self) -> float | None:
        """1.0, 0.0, or None if undecided."""
        return _VALUES.get(self.verdict)


def check(
    generated: str,
    expected: str,
    schema: SqlSchema | Mapping[str, Mapping[str, str]],
    databases: Sequence[str | PathLike[str] | LivePlace] = (),
    dialect: str = "duckdb",
    samples: int = 8,
    time_limit_s: float = 10,
) -> Equivalence:
    """Decides whether a generated query means the same as the expected one.

    Both queries run in a child process, read-only and within limits, on the given databases and on generated ones that
    satisfy every constraint of the schema. Equal arguments give the same verdict in every process.

    Args:
        generated: SQL that a model wrote.
        expected: SQL that is right.
        schema: schema of the database; may be a plain `{table: {column: type}}` mapping.
        databases: SQLite or DuckDB files with data, or schemas on servers that speak the dialect.
        dialect: dialect of both queries. `duckdb` and `sqlite` run in these engines; others are translated to DuckDB.
        samples: how many databases to generate if only DuckDB understands the queries; ten times as many if SQLite
            does, too.
        time_limit_s: seconds of processor time (with servers: by the clock) after which the pair is undecided.

    Raises:
        ValueError: an argument has the wrong form.
        UnreachableError: a server with data does not answer.
    """
    if Dialect.get(dialect.lower()) is None:
        raise ValueError(f"there is no dialect {dialect}")
    if samples < 1 or time_limit_s <= 0:
        raise ValueError("samples and time_limit_s have to be positive")
    if identical(generated, expected, dialect):
        return Equivalence("equivalent", "identical", {"reason": "the queries are identical"})
    schema_text = _schema_text(SqlSchema.of(schema))
    try:
        places = [place_to_text(one if isinstance(one, LivePlace) else Path(one)) for one in databases]
        arguments = (generated, expected, schema_text, places, dialect.lower(), samples, time_limit_s * _SOFT_SHARE)
        processes, patience = shared_processes(SqlLimits(), _PRELOAD), patience_with(*databases)
        told = processes.call(f"{_SEARCH}:search", arguments, time_limit_s, patience)
    except SqlError as error:
        reason = "out of time" if error.error_class is ErrorClass.TIMEOUT else "cannot run"
        return Equivalence("undecided", "undecided", {"reason": reason, "error": error.message})
    except SqlFaultError as error:  # sqlglot fails on some unforeseen trees; one pair must not stop a run
        # The queries are left out, because Dagster stores the log, which should not contain what models write.
        _log.warning("the search for a difference failed on a pair of queries; the evidence of its turn says why")
        return Equivalence("undecided", "undecided", {"reason": "a fault of the search", "error": str(error)})
    found = Equivalence(told["verdict"], told["rung"], told["evidence"])
    if found.evidence.get("contradicted_proof"):
        _log.warning(
            "a rewriting rule is at fault: it calls two queries equal, a database does not; the evidence of their turn "
            "has `contradicted_proof`"
        )
    return found
