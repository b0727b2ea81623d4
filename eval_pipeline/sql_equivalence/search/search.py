"""The way of one pair down the ladder: run in a child process, so that whatever it takes can be stopped."""

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.tasks import connection_to, engine_of
from eval_pipeline.sql_equivalence.queries.pair import QueryPair
from eval_pipeline.sql_equivalence.search.hunting import Hunt, Tally
from eval_pipeline.sql_equivalence.told import schema_from_json, shipped_counterexample

_LEAST_S = 0.1
_schema = lru_cache(maxsize=32)(schema_from_json)


def search(
    generated: str,
    expected: str,
    schema_json: str,
    databases: list[str],
    dialect: str,
    samples: int,
    seconds: float,
) -> dict[str, Any]:
    """Compares two queries; `verdict`, `rung` and `evidence` as `check` gives them."""
    try:
        pair = QueryPair(generated, expected, _schema(schema_json), dialect)
        return _Search(pair, samples, time.monotonic() + seconds).run([Path(path) for path in databases])
    except SqlError as error:
        evidence = {"reason": "cannot run", "error": error.message}
        return {"verdict": "undecided", "rung": "undecided", "evidence": evidence}


class _Search:
    def __init__(self, pair: QueryPair, samples: int, stop: float) -> None:
        self.pair, self.samples, self.stop = pair, samples, stop
        self.tally = Tally()
        self.shipped: list[dict[str, Any]] = []
        self.proved = False

    def run(self, databases: list[Path]) -> dict[str, Any]:
        for path in databases:
            if (found := self._on_shipped(path)) is not None:
                return self._tell("different", "refuted", f"results differ on {path.name}", found)
        if databases and all(told["error"] is not None for told in self.shipped):
            return self._tell("undecided", "undecided", "cannot run")
        self.proved = self.pair.proved()
        found = Hunt(self.pair, self.tally, self.samples, self.stop).run(proved=self.proved)
        if found is not None:
            return self._tell("different", "refuted", "results differ on a generated database", found)
        return self._not_refuted()

    def _on_shipped(self, path: Path) -> dict[str, Any] | None:
        """Compares on a database file; the counterexample where both give results that differ."""
        told: dict[str, Any] = {"database": path.name, "same": None, "error": None}
        self.shipped.append(told)
        try:
            run = connection_to(path, SqlLimits()).query
            left = max(self.stop - time.monotonic(), _LEAST_S)
            engine = engine_of(path)
            pair = self.pair.ready(engine)
            generated, expected = pair.results(lambda sql: run(sql, left))
            self.tally.runs |= engine == self.pair.native
            told["same"] = self.tally.match.agrees(generated, expected)
            if pair.cuts_ties(lambda sql: run(sql, left)):
                self.tally.unstable += 1
            elif told["same"]:
                self.tally.agreed(generated, expected)
            elif not self.pair.volatile:
                return shipped_counterexample(path.name, generated, expected)
        except SqlError as error:
            told["error"] = self.tally.error = error.message
        return None

    def _not_refuted(self) -> dict[str, Any]:
        tally = self.tally
        if not tally.compared and not tally.unstable:
            return self._tell("undecided", "undecided", "out of time" if tally.out_of_time else "cannot run")
        if self.proved:
            return self._tell("equivalent", "proved", "the queries have one canonical form")
        if tally.unstable or self.pair.volatile:
            why = "; ".join(self.pair.volatile) or "results change with the order of rows, or a LIMIT cuts through ties"
            return self._tell("undecided", "undecided", f"not deterministic: {why}")
        if tally.vacuous:
            return self._tell("undecided", "undecided", "vacuous: both results are empty on every database")
        return self._tell("agreed", "agreed", f"same results on {tally.compared} databases, which is no proof")

    def _tell(
        self, verdict: str, rung: str, reason: str, counterexample: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        evidence = {
            "reason": reason,
            "databases": self.tally.compared,
            "unstable": self.tally.unstable,
            "shipped": self.shipped,
            "counterexample": counterexample,
            "error": self.tally.error,
            "engine": self.pair.native,
            "translated_from": None if self.pair.dialect == self.pair.native else self.pair.dialect,
            "contradicted_proof": self.proved and verdict == "different",
        }
        return {"verdict": verdict, "rung": rung, "evidence": evidence}
