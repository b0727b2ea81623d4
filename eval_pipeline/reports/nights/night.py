"""Reads the results of a night from the record."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.queries import recorded_rows
from eval_pipeline.store.coverage import look_rows_of, own_difference, recorded_cases
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import ACKNOWLEDGEMENTS, COVERAGE, MODEL_VERSIONS, RUNS, TRENDS

Row = dict[str, Any]
COMPLETE = "complete"
LOSS = "loss"
UNKNOWN_CASES = CaseCounts()
NO_SERIES = {
    "failed": "failed before it could be compared",
    "canceled": "canceled before it could be compared",
    "running": "still running",
}
"""Status of a run → why there is no comparison."""
NOT_COMPARED = "not compared yet"
FEWEST_WRONG = 20
"""With fewer turns than this, that none is right says nothing about the configuration."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A run of the night: one model version on every suite."""

    model_version: str
    run_id: str
    failed: bool = False
    canceled: bool = False


@dataclass(frozen=True, slots=True)
class NightEvaluation:
    """One suite and model version of the night.

    Attributes:
        status: its status, as in `runs`.
        row: the row of `trends` for this date; None if the evaluation did not get that far.
        usd: dollars for its calls that night, as far as they are known; None if none of them is.
        usd_lacks: whether the price of some calls is unknown.
        tokens: tokens used by its calls; None if the provider does not report them.
        calls: number of calls.
        signs: signs that point to a wrong configuration instead of a bad model, a clause each.
        cases: how many cases of the suite it covers, and why others were left out.
        looks: rows of `sampled_estimates` if only drawn cases were asked, which have no row of `trends`.
    """

    suite: str
    model_version: str
    status: str
    row: Row | None
    usd: float | None
    tokens: int | None
    calls: int
    cases: CaseCounts = UNKNOWN_CASES
    looks: Sequence[Row] = ()
    usd_lacks: bool = False
    signs: Sequence[str] = ()

    @property
    def estimate(self) -> Row | None:
        """The accuracy of the whole suite as estimated from the part that was asked; None of whole evaluations."""
        rows = [row for row in self.looks if row["metric"] == "correct"]
        return max(rows, key=lambda row: row["look"], default=None)

    @property
    def difference(self) -> Row | None:
        """The estimated difference from the last full evaluation; None of whole evaluations."""
        return own_difference(self.looks, self.model_version)

    @property
    def is_worse_in_part(self) -> bool:
        """Whether the part that was asked shows a loss."""
        return self.difference is not None and self.difference["verdict"] == "worse"

    @property
    def coverage(self) -> Coverage:
        """How far its turns got."""
        return Coverage() if self.row is None else Coverage.from_row({**self.row, "scored": self.row["n"]})


@dataclass(frozen=True, slots=True)
class ToldLoss:
    """A loss of accuracy that has not been recovered since.

    Attributes:
        row: the newest row of the series.
        new: whether it first appeared that night.
        acknowledged: whether somebody has confirmed that it is known.
    """

    suite: str
    row: Row
    new: bool
    acknowledged: bool


@dataclass(frozen=True, slots=True)
class Night:
    """Everything to report about an evaluation date.

    Attributes:
        trends: for each suite and model version of the night that is compared, its rows of `trends` up to that date.
        limit: what was spent of the limit on costs, and what was not asked because of it; empty without a limit.
    """

    day: date
    evaluated: tuple[NightEvaluation, ...]
    losses: tuple[ToldLoss, ...]
    launched: tuple[Launched, ...] = ()
    limit: str = ""
    trends: Mapping[str, Mapping[str, Sequence[Row]]] = field(default_factory=dict)

    @property
    def usd(self) -> float | None:
        """Dollars for all calls, as far as they are known; None if of no evaluation anything is."""
        known = [one.usd for one in self.evaluated if one.calls and one.usd is not None]
        return sum(known) if known or not self.usd_lacks else None

    @property
    def usd_lacks(self) -> int:
        """The number of evaluations of which some dollars are unknown."""
        return sum(one.usd_lacks for one in self.evaluated)

    @property
    def waiting(self) -> tuple[ToldLoss, ...]:
        """The losses that nobody has acknowledged."""
        return tuple(loss for loss in self.losses if not loss.acknowledged)

    @property
    def failed(self) -> tuple[Launched, ...]:
        """The runs that failed."""
        return tuple(run for run in self.launched if run.failed)

    @property
    def canceled(self) -> tuple[Launched, ...]:
        """The runs that somebody ended."""
        return tuple(run for run in self.launched if run.canceled)

    @property
    def uncompared(self) -> tuple[NightEvaluation, ...]:
        """The evaluations whose figures no comparison has seen."""
        return tuple(one for one in self.evaluated if one.row is not None and not one.row.get("compared", True))

    @property
    def unfinished(self) -> tuple[NightEvaluation, ...]:
        """The evaluations that did not finish or reached their budget."""
        return tuple(one for one in self.evaluated if one.status != COMPLETE)


def read_night(
    record: Record, day: date, launched: Sequence[Launched] = (), limit: str = "", uncompared: Sequence[Row] = ()
) -> Night:
    """Reads the night of a date, by suite and model version, as far as a run of that date worked on them.

    Args:
        record: the record.
        day: the date.
        launched: the runs of the night.
        limit: what is told of the limit on costs.
        uncompared: the rows of the view `trends` that no comparison has made.
    """
    keys = record.partitions(RUNS, RecordKey(eval_date=day))
    suites = sorted({key.suite for key in keys if key.suite})
    trends = {suite: _trends(record, suite, [row for row in uncompared if row["suite"] == suite]) for suite in suites}
    evaluated = tuple(_evaluated(record, key, trends[key.suite or ""]) for key in keys)
    losses = tuple(loss for suite in suites for loss in _losses(record, suite, trends[suite], day))
    series = {suite: found for suite in suites if (found := _series(trends[suite], day))}
    return Night(day, evaluated, losses, tuple(launched), limit, series)


def _series(trends: Sequence[Row], day: date) -> dict[str, list[Row]]:
    """Returns the rows of each model version in use that has one of that date, up to it, oldest first."""
    found: dict[str, list[Row]] = {}
    for row in sorted(trends, key=lambda row: (row["model_version"], row["eval_date"])):
        if row["eval_date"] <= day:
            found.setdefault(row["model_version"], []).append(row)
    return {name: rows for name, rows in found.items() if rows[-1]["eval_date"] == day and not rows[-1]["retired"]}


def _trends(record: Record, suite: str, uncompared: Sequence[Row]) -> list[Row]:
    key, newer = RecordKey.of_suite(suite), {(row["model_version"], row["eval_date"]) for row in uncompared}
    rows = recorded_rows(record, TRENDS, [key]).to_pylist()
    return [*(row for row in rows if (row["model_version"], row["eval_date"]) not in newer), *uncompared]


def _evaluated(record: Record, key: RecordKey, trends: Sequence[Row]) -> NightEvaluation:
    columns = ["status", "started_at", "usd_spent", "tokens_spent", "calls"]
    runs = record.read(RUNS, key, columns).to_pylist()
    found = (row for row in trends if (row["model_version"], row["eval_date"]) == (key.model_version, key.eval_date))
    spent = [row for row in runs if row["calls"]]
    charged = not _is_simulated(record, key.model_version or "")  # simulated models cost nothing
    known = [row["usd_spent"] for row in spent if row["usd_spent"] is not None]
    lacks, row = charged and len(known) < len(spent), next(found, None)
    return NightEvaluation(
        suite=key.suite or "",
        model_version=key.model_version or "",
        status=max(runs, key=lambda row: row["started_at"])["status"],
        row=row,
        usd=sum(known) if known or not lacks else None,
        # A call that was answered took some: none at all is what providers say that do not count them.
        tokens=sum(row["tokens_spent"] or 0 for row in runs) or (None if spent else 0),
        calls=sum(row["calls"] or 0 for row in runs),
        cases=_cases(record, key),
        looks=_looks(record, key),
        usd_lacks=lacks,
        signs=_signs(record, key, row),
    )


def _signs(record: Record, key: RecordKey, row: Row | None) -> list[str]:
    """Returns what speaks for a wrong configuration: oddities of the answers, or that none of many is right."""
    told = recorded_rows(record, COVERAGE, [key], ["implausible"])["implausible"].to_pylist() or [None]
    found: list[str] = json.loads(told[0] or "[]")
    if not found and row and row["accuracy"] == 0 and row["n"] >= FEWEST_WRONG and not row["simulated"]:
        found = [f"none of {row['n']} turns is right"]
    return found


def _cases(record: Record, key: RecordKey) -> CaseCounts:
    if not (key.suite and key.model_version and key.eval_date):
        return CaseCounts()
    return recorded_cases(record, Partition(key.suite, key.model_version, key.eval_date))


def _looks(record: Record, key: RecordKey) -> list[Row]:
    if not (key.suite and key.model_version and key.eval_date):
        return []
    return look_rows_of(record, Partition(key.suite, key.model_version, key.eval_date))


def _is_simulated(record: Record, name: str) -> bool:
    key = RecordKey.of_model_version(name)
    return any(recorded_rows(record, MODEL_VERSIONS, [key], ["simulated"])["simulated"].to_pylist())


def _losses(record: Record, suite: str, trends: Sequence[Row], day: date) -> Iterator[ToldLoss]:
    """Yields, for each model version in use, the loss that is still open on that date, if any."""
    key = RecordKey.of_suite(suite)
    rows = recorded_rows(record, ACKNOWLEDGEMENTS, [key], ["model_version", "open_loss_date"]).to_pylist()
    known = {(row["model_version"], row["open_loss_date"]) for row in rows}
    newest = {
        row["model_version"]: row for row in sorted(trends, key=lambda row: row["eval_date"]) if row["eval_date"] <= day
    }
    for name, row in sorted(newest.items()):
        if row["open_loss_date"] is not None and not row["retired"]:
            new = row["eval_date"] == day and row["verdict"] == LOSS
            yield ToldLoss(suite, row, new, (name, row["open_loss_date"]) in known)
