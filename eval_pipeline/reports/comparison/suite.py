"""Reads from the record everything needed to compare a suite's model versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.comparison.contracts import contract_hashes, contract_rows
from eval_pipeline.reports.comparison.conversation import figures_hash, newest_figures
from eval_pipeline.reports.comparison.differing import (
    RecordedAnswers,
    answers_hashes,
    no_answers,
    recorded_answers,
    sides_of_pair,
)
from eval_pipeline.reports.queries import literal
from eval_pipeline.store.coverage import recorded_cases
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import GOLD_SUSPECTS, MODEL_COMPARISONS, TRENDS

Row = dict[str, Any]
SIDES = ("a", "b")
NOT_SIGNIFICANT = "not_significant"
_FULL = "full"
"""The scope of an evaluation of the whole suite."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A model version's newest evaluation, compared with the others.

    Attributes:
        row: its row of `trends`.
        unit: `usd` or `tokens`, the unit of cost for the Pareto front; None if no cost is known.
        cost: cost per turn in that unit.
        on_front: whether no other of its kind (real or simulated) is at least as cheap and as accurate; None if
            unknown.
        equals: model versions from which it does not differ significantly.
        untested: model versions against which it was not tested, as those that were asked another part of the suite.
    """

    row: Row
    unit: str | None
    cost: float | None
    on_front: bool | None
    equals: tuple[str, ...]
    untested: tuple[str, ...]

    @property
    def model_version(self) -> str:
        """Name of the model version."""
        return str(self.row["model_version"])


class SuiteComparison:
    """The comparisons and trends of a suite.

    Attributes:
        comparisons, trends: the tables as they are on record.
        suspects: rows of `gold_suspects`.
        conversations: figures on how errors continue through conversations (`conversation.FIGURES`); empty for most
            tracks.
        answers: looks up what an evaluation holds of turns on which a pair differs.
        case_counts: how many cases the newest evaluation of each model version covers.
        contracts: rows of `accuracy_by_contract` of those evaluations; empty for most tracks.
    """

    def __init__(
        self,
        suite: str,
        comparisons: pa.Table,
        trends: pa.Table,
        suspects: Sequence[Row] = (),
        conversations: Sequence[Row] = (),
        answers: RecordedAnswers = no_answers,
        case_counts: Mapping[str, CaseCounts] | None = None,
        contracts: Sequence[Row] = (),
    ) -> None:
        self.contracts = contracts
        self.answers = answers
        self.case_counts = case_counts or {}
        self.suite, self.comparisons, self.trends = suite, comparisons, trends
        self.suspects, self.conversations = suspects, conversations

    def cases_of(self, standing: Standing) -> CaseCounts:
        """Returns how many cases an evaluation covers; unknown for older evaluations."""
        return self.case_counts.get(standing.model_version, CaseCounts())

    def cases_query(self) -> str:
        """Returns the query for how many cases each newest evaluation covers."""
        columns = "model_version, cases, cases_in_suite, left_out_because"
        return f"SELECT {columns} FROM latest_coverage WHERE suite = {literal(self.suite)} ORDER BY model_version"

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
        """Date of the newest evaluation."""
        newest: date = max(row["eval_date"] for row in self.nights)
        return newest

    @cached_property
    def standings(self) -> list[Standing]:
        """The newest evaluation of each model version, the most accurate first."""
        newest = {row["model_version"]: row for row in self.nights}
        found = [
            _standing(row, self.pairs, [name for name in newest if name != row["model_version"]])
            for row in newest.values()
        ]
        return sorted(found, key=lambda standing: (-(standing.row["accuracy"] or 0), standing.model_version))

    @property
    def charted(self) -> list[Standing]:
        """Those that were asked the same: the whole suite, if any was, else what the most accurate one was."""
        scopes = [found.row["scope"] for found in self.standings]
        common = _FULL if _FULL in scopes else scopes[0]
        return [found for found in self.standings if found.row["scope"] == common]


def read_comparison(record: Record, suite: str) -> SuiteComparison | None:
    """Reads a suite's comparisons, without retired model versions; None if there are none.

    Args:
        record: the record of the home.
        suite: its name.
    """
    key = RecordKey.of_suite(suite)
    if any(record.header(table, key) is None for table in (MODEL_COMPARISONS, TRENDS)):
        return None
    trends = record.read(TRENDS, key)
    trends = trends.filter(pc.invert(pc.fill_null(trends["retired"], False)))  # older files have no such column
    if not trends.num_rows:
        return None
    audited = record.header(GOLD_SUSPECTS, key) is not None
    suspects = record.read(GOLD_SUSPECTS, key).to_pylist() if audited else []
    figures = newest_figures(record, suite, _newest(trends))
    pairs, answers = record.read(MODEL_COMPARISONS, key), recorded_answers(record)
    counts = _case_counts(record, suite, trends)
    contracts = contract_rows(record, _partitions(suite, trends))
    return SuiteComparison(suite, pairs, trends, suspects, figures, answers, counts, contracts)


def _case_counts(record: Record, suite: str, trends: pa.Table) -> dict[str, CaseCounts]:
    return {name: recorded_cases(record, Partition(suite, name, day)) for name, day in _newest(trends)}


def _partitions(suite: str, trends: pa.Table) -> list[Partition]:
    return [Partition(suite, name, day) for name, day in _newest(trends)]


def _newest(trends: pa.Table) -> Sequence[tuple[str, date]]:
    """Returns the newest date of each model version."""
    names, dates = trends["model_version"].to_pylist(), trends["eval_date"].to_pylist()
    return list(dict(sorted(zip(names, dates, strict=True))).items())


def comparison_hashes(record: Record, suite: str) -> Mapping[str, str]:
    """Returns content hashes of everything that a suite's comparison report shows; empty if there is nothing to show.

    The arguments are those of `read_comparison`.
    """
    headers = {
        table.name: record.header(table, RecordKey.of_suite(suite))
        for table in (MODEL_COMPARISONS, TRENDS, GOLD_SUSPECTS)
    }
    hashes = {name: header.content_hash for name, header in headers.items() if header is not None}
    if headers[TRENDS.name] is None:
        return hashes
    trends = record.read(TRENDS, RecordKey.of_suite(suite), ["model_version", "eval_date"])
    figures = newest_figures(record, suite, _newest(trends))
    hashes |= contract_hashes(record, _partitions(suite, trends))
    counts = {name: found.columns() for name, found in _case_counts(record, suite, trends).items()}
    hashes["cases"] = json_hash(counts)
    if headers[MODEL_COMPARISONS.name] is not None:
        named = [f"{what}_{side}" for side in SIDES for what in ("model", "eval_date")]
        pairs = record.read(MODEL_COMPARISONS, RecordKey.of_suite(suite), named).to_pylist()
        sides = sorted({side for pair in pairs for side in sides_of_pair(suite, pair)}, key=str)
        hashes |= answers_hashes(record, sides)
    return hashes | ({"conversations": figures_hash(figures)} if figures else {})


def pairs_of(record: Record, partition: Partition) -> list[Row]:
    """Returns the rows of `model_comparisons` that include this evaluation."""
    key = RecordKey.of_suite(partition.suite)
    if record.header(MODEL_COMPARISONS, key) is None:
        return []
    wanted = (partition.model_version, partition.eval_date)
    rows: list[Row] = record.read(MODEL_COMPARISONS, key).to_pylist()
    return [row for row in rows if any((row[f"model_{s}"], row[f"eval_date_{s}"]) == wanted for s in SIDES)]


def _standing(row: Row, pairs: list[Row], others: Sequence[str]) -> Standing:
    name = row["model_version"]
    mine = [(pair, side) for pair in pairs for side in SIDES if pair[f"model_{side}"] == name]
    verdicts = {pair["model_b" if side == "a" else "model_a"]: pair["verdict"] for pair, side in mine}
    equals, untested = (
        tuple(other for other in others if verdicts.get(other) == verdict) for verdict in (NOT_SIGNIFICANT, None)
    )
    if mine:
        unit, on_front = mine[0][0][f"pareto_cost_{mine[0][1]}"], mine[0][0][f"on_front_{mine[0][1]}"]
    else:
        unit, on_front = ("usd" if row["usd_total"] is not None else "tokens"), None
    total = row[f"{unit}_total"] if unit else None
    cost = total / row["n"] if total is not None and row["n"] else None
    return Standing(row, unit, cost, on_front, equals, untested)


def differs(pair: Row) -> bool:
    """Returns whether the two model versions of a pair differ significantly."""
    return pair["verdict"] not in (None, NOT_SIGNIFICANT)
