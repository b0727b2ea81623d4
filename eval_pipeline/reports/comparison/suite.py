"""What the record holds of a suite's model versions side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.comparison.conversation import figures_hash, newest_figures
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import GOLD_SUSPECTS, MODEL_COMPARISONS, TRENDS

Row = dict[str, Any]
SIDES = ("a", "b")
NOT_SIGNIFICANT = "not_significant"


@dataclass(frozen=True, slots=True)
class Standing:
    """A model version's newest evaluation among the others.

    Attributes:
        row: its row of `trends`.
        unit: `usd` or `tokens`, by which it stands on the Pareto front or not; None where no cost is known.
        cost: that, a turn.
        on_front: no other one of its kind (model or stand-in) is as cheap and as accurate; None where not known.
        equals: model versions that it is not significantly different from, or was not tested against.
    """

    row: Row
    unit: str | None
    cost: float | None
    on_front: bool | None
    equals: tuple[str, ...]

    @property
    def model_version(self) -> str:
        """Its name."""
        return str(self.row["model_version"])


class SuiteComparison:
    """The comparisons and trends of a suite.

    Attributes:
        comparisons, trends: the tables as they are on record.
        suspects: rows of `gold_suspects`.
        conversations: figures on what turns make of those before them (`conversation.FIGURES`); none of most tracks.
    """

    def __init__(
        self,
        suite: str,
        comparisons: pa.Table,
        trends: pa.Table,
        suspects: Sequence[Row] = (),
        conversations: Sequence[Row] = (),
    ) -> None:
        self.suite, self.comparisons, self.trends = suite, comparisons, trends
        self.suspects, self.conversations = suspects, conversations

    @cached_property
    def pairs(self) -> list[Row]:
        """Rows of `model_comparisons`."""
        rows: list[Row] = self.comparisons.to_pylist()
        return sorted(rows, key=lambda row: (row["model_a"], row["model_b"]))

    @cached_property
    def nights(self) -> list[Row]:
        """Rows of `trends` by model version and date."""
        rows: list[Row] = self.trends.to_pylist()
        return sorted(rows, key=lambda row: (row["model_version"], row["eval_date"]))

    @property
    def eval_date(self) -> date:
        """The newest evaluation."""
        newest: date = max(row["eval_date"] for row in self.nights)
        return newest

    @cached_property
    def standings(self) -> list[Standing]:
        """The newest evaluation of each model version, the most accurate first."""
        newest = {row["model_version"]: row for row in self.nights}
        found = [_standing(row, self.pairs) for row in newest.values()]
        return sorted(found, key=lambda standing: (-(standing.row["accuracy"] or 0), standing.model_version))


def read_comparison(record: Record, suite: str) -> SuiteComparison | None:
    """The suite's comparisons, without retired model versions; None where none are on record or nothing is left."""
    key = RecordKey.of_suite(suite)
    if any(record.header(table, key) is None for table in (MODEL_COMPARISONS, TRENDS)):
        return None
    trends = record.read(TRENDS, key)
    trends = trends.filter(pc.invert(pc.fill_null(trends["retired"], False)))  # an older file does not say
    if not trends.num_rows:
        return None
    audited = record.header(GOLD_SUSPECTS, key) is not None
    suspects = record.read(GOLD_SUSPECTS, key).to_pylist() if audited else []
    figures = newest_figures(record, suite, _newest(trends))
    return SuiteComparison(suite, record.read(MODEL_COMPARISONS, key), trends, suspects, figures)


def _newest(trends: pa.Table) -> Sequence[tuple[str, date]]:
    """The newest date of each model version."""
    names, dates = trends["model_version"].to_pylist(), trends["eval_date"].to_pylist()
    return list(dict(sorted(zip(names, dates, strict=True))).items())


def comparison_hashes(record: Record, suite: str) -> Mapping[str, str]:
    """Content hashes of what a report of the suite's comparisons shows; empty where there is nothing."""
    headers = {
        table.name: record.header(table, RecordKey.of_suite(suite))
        for table in (MODEL_COMPARISONS, TRENDS, GOLD_SUSPECTS)
    }
    hashes = {name: header.content_hash for name, header in headers.items() if header is not None}
    if headers[TRENDS.name] is None:
        return hashes
    trends = record.read(TRENDS, RecordKey.of_suite(suite), ["model_version", "eval_date"])
    figures = newest_figures(record, suite, _newest(trends))
    return hashes | ({"conversations": figures_hash(figures)} if figures else {})


def pairs_of(record: Record, partition: Partition) -> list[Row]:
    """Rows of `model_comparisons` in which this very evaluation was compared."""
    key = RecordKey.of_suite(partition.suite)
    if record.header(MODEL_COMPARISONS, key) is None:
        return []
    wanted = (partition.model_version, partition.eval_date)
    rows: list[Row] = record.read(MODEL_COMPARISONS, key).to_pylist()
    return [row for row in rows if any((row[f"model_{s}"], row[f"eval_date_{s}"]) == wanted for s in SIDES)]


def _standing(row: Row, pairs: list[Row]) -> Standing:
    name = row["model_version"]
    mine = [(pair, side) for pair in pairs for side in SIDES if pair[f"model_{side}"] == name]
    equals = [pair["model_b" if side == "a" else "model_a"] for pair, side in mine if not differs(pair)]
    if mine:
        unit, on_front = mine[0][0][f"pareto_cost_{mine[0][1]}"], mine[0][0][f"on_front_{mine[0][1]}"]
    else:
        unit, on_front = ("usd" if row["usd_total"] is not None else "tokens"), None
    total = row[f"{unit}_total"] if unit else None
    cost = total / row["n"] if total is not None and row["n"] else None
    return Standing(row, unit, cost, on_front, tuple(equals))


def differs(pair: Row) -> bool:
    """Whether the two of a pair are told apart."""
    return pair["verdict"] not in (None, NOT_SIGNIFICANT)
