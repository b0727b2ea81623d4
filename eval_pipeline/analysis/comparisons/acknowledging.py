"""Acknowledged losses: recorded with who acknowledged them and why."""

from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple

from eval_pipeline.analysis.comparisons.compared import newest_trends
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.store.durable import locked
from eval_pipeline.store.record import Contents
from eval_pipeline.store.tables import ACKNOWLEDGEMENTS
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import now

_PATIENCE_S = 60.0


class Loss(NamedTuple):
    """A loss of a model version, identified by the date on which it appeared."""

    model_version: str
    date: date


def acknowledged_losses(inputs: Inputs) -> frozenset[Loss]:
    """Returns the acknowledged losses of a suite."""
    if inputs.header(ACKNOWLEDGEMENTS) is None:
        return frozenset()
    rows = inputs.read(ACKNOWLEDGEMENTS, ["model_version", "open_loss_date"]).to_pylist()
    return frozenset(Loss(row["model_version"], row["open_loss_date"]) for row in rows)


def open_loss(inputs: Inputs, model_version: str) -> Loss:
    """Returns the open loss of a model version.

    Raises:
        UsageError: it has none.
    """
    rows = {row["model_version"]: row for row in newest_trends(inputs.workspace, inputs.suite)}
    if model_version not in rows:
        known = ", ".join(sorted(rows)) or "none"
        raise UsageError(f"'{model_version}' has no series on '{inputs.suite}'; known: {known}")
    shown = rows[model_version]["open_loss_date"]
    if shown is None:
        raise UsageError(f"'{model_version}' has no open loss on '{inputs.suite}'; there is nothing to acknowledge")
    return Loss(model_version, shown)


def acknowledge(inputs: Inputs, loss: Loss, who: str, why: str) -> None:
    """Records that somebody has acknowledged a loss."""
    row = dict(zip(_COLUMNS, (*loss, who, why, now()), strict=True))
    _rewrite(inputs, lambda rows: [*rows, row])


def forget_acknowledged(inputs: Inputs, model_version: str) -> None:
    """Removes a model version's acknowledgements from the record."""
    _rewrite(inputs, lambda rows: [row for row in rows if row["model_version"] != model_version])


def _rewrite(inputs: Inputs, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    def changed() -> Contents | None:
        before = inputs.read(ACKNOWLEDGEMENTS).to_pylist() if inputs.header(ACKNOWLEDGEMENTS) else []
        rows = change(before)
        if rows == before:
            return None
        columns = {name: [row[name] for row in rows] for name in _COLUMNS}
        return {"acknowledgements": json_hash(len(rows))}, columns

    path = inputs.workspace.home.root / "locks" / f"suite={inputs.suite}" / "acknowledgements.lock"
    with locked(path, _PATIENCE_S):
        inputs.record.rewrite(ACKNOWLEDGEMENTS, inputs.key(ACKNOWLEDGEMENTS), changed)


_COLUMNS = tuple(column.name for column in ACKNOWLEDGEMENTS.columns)
