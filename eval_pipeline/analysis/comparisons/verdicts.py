"""Checks of trends, used by asset checks and the command line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from eval_pipeline.analysis.comparisons.acknowledging import acknowledged_losses
from eval_pipeline.analysis.comparisons.compared import DRIFT_DOWN, LOSS, Row, trends_of
from eval_pipeline.core import shown
from eval_pipeline.core.model import Json, Partition
from eval_pipeline.reports.contents.draws import difference_text
from eval_pipeline.reports.places.links import compare_path
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.store.coverage import newest_part
from eval_pipeline.workspace.inputs import Inputs

SERVED_AS_BEFORE = "served_as_before"
"""Name of a check that is notified although it only warns, because unchanged figures would not show its failure."""
SIDE_BY_SIDE = "side_by_side"
"""Name of a fact: paths in the workbench that show two evaluations side by side."""
Asked = Mapping[str, date]
"""Model version → the evaluation date that is asked about."""


def check_no_loss(inputs: Inputs, asked: Asked | None = None) -> CheckVerdict:
    """Checks that no model version has a loss that is neither made good nor acknowledged.

    An evaluation of a part of the suite that is newer than the last full one is tested by its own estimate.

    Args:
        inputs: the suite.
        asked: model versions and dates to check; by default those in use, each on its newest date.
    """
    rows, known = _rows(inputs, asked), acknowledged_losses(inputs)
    lost = [row for row in rows if row["open_loss_date"] is not None]
    waiting = [row for row in lost if (row["model_version"], row["open_loss_date"]) not in known]
    told = [_changed(row, "previous") if row["verdict"] == LOSS else _still_open(row) for row in waiting]
    if waiting:
        names = dict.fromkeys(row["model_version"] for row in waiting)
        commands = (
            f"`eval-pipeline acknowledge --suite {inputs.suite} --model-version {name} --why …`" for name in names
        )
        told[-1] += f"; {' and '.join(commands)} end{'s' * (len(names) == 1)} this"
    parts = dict(_parts(inputs, rows, asked))
    told += [text for text, worse in parts.items() if worse]
    facts: dict[str, Json] = {"acknowledged": len(lost) - len(waiting)}
    dates = ["previous_date" if row["verdict"] == LOSS else "open_loss_against" for row in waiting]
    found = _verdict(rows, told, "previous", "the date before", facts | _side_by_side(inputs, waiting, dates))
    undecided = [text for text, worse in parts.items() if not worse]
    return replace(found, text="; ".join([found.text, *undecided])) if found.passed else found


def _parts(inputs: Inputs, rows: Sequence[Row], asked: Asked | None) -> Iterator[tuple[str, bool]]:
    """Yields what each part asked since the last full evaluation shows, and whether it is a loss."""
    for row in rows:
        name, record = row["model_version"], inputs.workspace.record
        part = newest_part(record, inputs.suite, name)
        if part is None:
            continue
        (place, found), is_new = part, part[0].eval_date > row["eval_date"]
        if is_new if asked is None else place.eval_date == asked[name]:
            yield (
                f"{name} on {place.eval_date}: {difference_text(found)}: {found['verdict']}",
                found["verdict"] == "worse",
            )


def check_no_drift(inputs: Inputs, asked: Asked | None = None) -> CheckVerdict:
    """Checks that no model version is significantly worse than on its first date; arguments as for `check_no_loss`."""
    rows = _rows(inputs, asked)
    drifted = [row for row in rows if row["verdict"] == DRIFT_DOWN]
    worse = [_changed(row, "first") for row in drifted]
    facts = _side_by_side(inputs, drifted, ["first_date"] * len(drifted))
    return _verdict(rows, worse, "first", "the first date", facts)


def check_served(inputs: Inputs, asked: Asked | None = None) -> CheckVerdict:
    """Checks that each model version was answered by one model, the same as on the last date; arguments as above."""
    rows = _rows(inputs, asked)
    told = [f"{row['model_version']}: {text}" for row in rows for text in _served(row)]
    known = sum(row["served_model"] is not None for row in rows)
    counts: dict[str, Json] = {"model_versions": len(rows), "told": known, "changed": len(told)}
    return CheckVerdict(not told, "; ".join(told) or f"who answered is told of {_versions(known)}, as before", counts)


def _served(row: Row) -> Iterator[str]:
    if row["served_change"]:
        yield f"another model answered than before ({row['served_change']}); its series begins anew"
    if "," in (row["served_model"] or ""):
        yield f"several models answered within one evaluation ({row['served_model']})"


def _rows(inputs: Inputs, asked: Asked | None) -> list[Row]:
    """Returns one row for each model version asked about: that of the given date, or else its newest."""
    by_name: dict[str, list[Row]] = {}
    for row in trends_of(inputs.workspace, inputs.suite):
        by_name.setdefault(row["model_version"], []).append(row)
    dates = asked if asked is not None else dict.fromkeys(_in_use(inputs, by_name))
    chosen = [(by_name[name], day) for name, day in dates.items() if name in by_name]
    return [next((row for row in rows if row["eval_date"] == day), rows[-1]) for rows, day in chosen]


def _in_use(inputs: Inputs, by_name: Mapping[str, list[Row]]) -> Iterable[str]:
    """Returns the model versions that are active, or evaluated as recently as any other."""
    used = {name: rows for name, rows in by_name.items() if not rows[-1]["retired"]}
    newest = max((rows[-1]["eval_date"] for rows in used.values()), default=None)
    versions = inputs.workspace.model_versions
    return (
        name
        for name, rows in used.items()
        if rows[-1]["eval_date"] == newest or (name in versions and versions[name].active)
    )


def _verdict(rows: list[Row], worse: list[str], name: str, against: str, facts: Mapping[str, Json]) -> CheckVerdict:
    tested = sum(row[f"{name}_verdict"] is not None for row in rows)
    counts: dict[str, Json] = {"model_versions": len(rows), "tested": tested, "worse": len(worse), **facts}
    if worse:
        return CheckVerdict(False, "; ".join(worse), counts)
    if not tested:
        return CheckVerdict(True, f"no model version has an earlier evaluation to test against {against}", counts)
    return CheckVerdict(True, f"none of {_versions(tested)} is significantly worse than on {against}", counts)


def _versions(number: int) -> str:
    return shown.counted(number, "model version", "model versions")


def _side_by_side(inputs: Inputs, rows: Sequence[Row], dates: Sequence[str]) -> dict[str, Json]:
    """Returns workbench paths that show each evaluation beside the one it is worse than."""
    found: list[Json] = []
    for row, earlier in zip(rows, dates, strict=True):
        days = (row[earlier], row["eval_date"])
        found.append(compare_path([Partition(inputs.suite, row["model_version"], day) for day in days]))
    return {SIDE_BY_SIDE: found} if found else {}


def _changed(row: Row, name: str) -> str:
    told = shown.points_text(*(row[f"{name}_{end}"] for end in ("difference", "low", "high")))
    return (
        f"{row['model_version']}: {told}, p {shown.p_value(row[f'{name}_p_corrected'])}, both corrected, against "
        f"{row[f'{name}_date']} on {shown.turns(row[f'{name}_n'])} "
        f"({row[f'{name}_broken']:,} broken, {row[f'{name}_fixed']:,} fixed)"
    )


def _still_open(row: Row) -> str:
    return (
        f"{row['model_version']}: the loss of {row['open_loss_date']} is still open: "
        f"{shown.open_loss(row)} points against {row['open_loss_against']}, "
        f"p {shown.open_loss_p(row)}"
    )
