"""What a night brought, read from the record."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from eval_pipeline.core.coverage import Coverage
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import ACKNOWLEDGEMENTS, MODEL_VERSIONS, RUNS, TRENDS

Row = dict[str, Any]
COMPLETE = "complete"
LOSS = "loss"
NO_SERIES = "failed before it could be compared"


@dataclass(frozen=True, slots=True)
class Launched:
    """A run of the night, of one model version on every suite."""

    model_version: str
    run_id: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One suite and model version of the night.

    Attributes:
        status: as in `runs`.
        row: of `trends`, of that date; None where the evaluation did not get there.
        usd: what its calls cost that night; None where no price is known.
        tokens: what they took.
        calls: how many there were.
    """

    suite: str
    model_version: str
    status: str
    row: Row | None
    usd: float | None
    tokens: int
    calls: int

    @property
    def coverage(self) -> Coverage:
        """How far its turns got."""
        return Coverage() if self.row is None else Coverage.from_row({**self.row, "scored": self.row["n"]})


@dataclass(frozen=True, slots=True)
class OpenLoss:
    """A loss that has not been made good.

    Attributes:
        row: the newest one of the series.
        new: it showed on that night.
        acknowledged: somebody has said that it is known.
    """

    suite: str
    row: Row
    new: bool
    acknowledged: bool


@dataclass(frozen=True, slots=True)
class Night:
    """All that there is to say of an evaluation date."""

    day: date
    evaluated: tuple[Evaluated, ...]
    losses: tuple[OpenLoss, ...]
    launched: tuple[Launched, ...] = ()

    @property
    def usd(self) -> float | None:
        """Dollars of all calls; None where the price of some is not known."""
        spent = [one for one in self.evaluated if one.calls]
        return None if any(one.usd is None for one in spent) else sum(one.usd or 0.0 for one in spent)

    @property
    def waiting(self) -> tuple[OpenLoss, ...]:
        """Losses that nobody has acknowledged."""
        return tuple(loss for loss in self.losses if not loss.acknowledged)

    @property
    def failed(self) -> tuple[Launched, ...]:
        """Runs that failed."""
        return tuple(run for run in self.launched if run.failed)

    @property
    def unfinished(self) -> tuple[Evaluated, ...]:
        """Evaluations that did not come to their end, or whose budget was reached."""
        return tuple(one for one in self.evaluated if one.status != COMPLETE)


def read_night(record: Record, day: date, launched: Sequence[Launched] = ()) -> Night:
    """The night of a date, by suite and model version; without what no run of that date has touched."""
    keys = [key for key in record.partitions(RUNS) if key.eval_date == day]
    suites = sorted({key.suite for key in keys if key.suite})
    trends = {suite: _trends(record, suite) for suite in suites}
    evaluated = tuple(_evaluated(record, key, trends[key.suite or ""]) for key in keys)
    losses = tuple(loss for suite in suites for loss in _losses(record, suite, trends[suite], day))
    return Night(day, evaluated, losses, tuple(launched))


def _trends(record: Record, suite: str) -> list[Row]:
    key = RecordKey.of_suite(suite)
    return [] if record.header(TRENDS, key) is None else record.read(TRENDS, key).to_pylist()


def _evaluated(record: Record, key: RecordKey, trends: Sequence[Row]) -> Evaluated:
    columns = ["status", "started_at", "usd_spent", "tokens_spent", "calls"]
    runs = record.read(RUNS, key, columns).to_pylist()
    found = (row for row in trends if (row["model_version"], row["eval_date"]) == (key.model_version, key.eval_date))
    spent = [row for row in runs if row["calls"]]
    charged = not _is_simulated(record, key.model_version or "")  # nobody is paid for what stand-ins say
    known = not charged or all(row["usd_spent"] is not None for row in spent)
    return Evaluated(
        suite=key.suite or "",
        model_version=key.model_version or "",
        status=max(runs, key=lambda row: row["started_at"])["status"],
        row=next(found, None),
        usd=sum(row["usd_spent"] or 0.0 for row in spent) if known else None,
        tokens=sum(row["tokens_spent"] or 0 for row in runs),
        calls=sum(row["calls"] or 0 for row in runs),
    )


def _is_simulated(record: Record, name: str) -> bool:
    key = RecordKey.of_model_version(name)
    if record.header(MODEL_VERSIONS, key) is None:
        return False
    return bool(record.read(MODEL_VERSIONS, key, ["simulated"])["simulated"][0].as_py())


def _losses(record: Record, suite: str, trends: Sequence[Row], day: date) -> Iterator[OpenLoss]:
    """Of each model version in use, what its series says up to that date."""
    key = RecordKey.of_suite(suite)
    known: set[tuple[str, date]] = set()
    if record.header(ACKNOWLEDGEMENTS, key) is not None:
        rows = record.read(ACKNOWLEDGEMENTS, key, ["model_version", "open_loss_date"]).to_pylist()
        known = {(row["model_version"], row["open_loss_date"]) for row in rows}
    newest = {
        row["model_version"]: row for row in sorted(trends, key=lambda row: row["eval_date"]) if row["eval_date"] <= day
    }
    for name, row in sorted(newest.items()):
        if row["open_loss_date"] is not None and not row["retired"]:
            new = row["eval_date"] == day and row["verdict"] == LOSS
            yield OpenLoss(suite, row, new, (name, row["open_loss_date"]) in known)
