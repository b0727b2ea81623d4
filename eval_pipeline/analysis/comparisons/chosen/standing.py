"""What an evaluation stands beside: how it differs from the one before it, in a line."""

from eval_pipeline.analysis.comparisons.chosen.causes import causes_of
from eval_pipeline.analysis.comparisons.chosen.references import BEFORE, newest_first, time_of_day
from eval_pipeline.analysis.comparisons.chosen.shown import sides_of
from eval_pipeline.analysis.comparisons.chosen.sides import Side
from eval_pipeline.analysis.comparisons.pairs import comparison_rows, is_refused
from eval_pipeline.analysis.comparisons.scored import TurnReader
from eval_pipeline.analysis.comparisons.two_figures import NOT_SIGNIFICANT
from eval_pipeline.core import shown
from eval_pipeline.core.model import Partition
from eval_pipeline.workspace.workspace import Workspace


def beside_text(workspace: Workspace, partition: Partition) -> str | None:
    """Returns how an evaluation differs from the one before it, with the command that compares them.

    `83.3% → 50.0% since 18:24; prompt changed; 20 broken, 0 fixed: eval-pipeline compare fake-1@before fake-1`

    Accuracies are on the common turns. None if there was none before it of the same scope, or its turns were drawn.
    """
    sides = sides_of(workspace, partition.suite, {partition.model_version})
    by_known = {side.known: side for side in sides}
    order = [by_known[known] for known in newest_first(list(by_known))]
    place = next((place for place, side in enumerate(order) if side.evaluated.partition == partition), None)
    if place is None or place + 1 == len(order):
        return None
    after, before = order[place : place + 2]
    if before.evaluated.scope != after.evaluated.scope:
        return None
    (row,) = comparison_rows([(before.evaluated, after.evaluated)], TurnReader(workspace))
    since = f"since {_when(before, after)}"
    if is_refused(row["reason"]) or row["accuracy_a"] is None:
        return f"{since}: {row['reason']}"
    a, b = shown.rates(row["accuracy_a"], row["accuracy_b"], row["low"], row["high"])
    told = [
        f"{a} → {b} {since}",
        *causes_of(before.told, after.told, after.served_change(before)),
    ]
    tested = {None: f", no test: {row['reason']}", NOT_SIGNIFICANT: ", not significant"}.get(row["verdict"], "")
    told.append(f"{row['broken']:,} broken, {row['fixed']:,} fixed{tested}")
    return f"{'; '.join(told)}: {_command(before, after, is_latest=place == 0)}"


def _when(before: Side, after: Side) -> str:
    """Returns the time of an evaluation of the same date, the date of another."""
    known = before.known
    time = time_of_day(known.begun_at) if known.eval_date == after.known.eval_date else ""
    return time or str(known.eval_date)


def _command(before: Side, after: Side, *, is_latest: bool) -> str:
    name = after.known.model_version
    sides = (f"{name}@{BEFORE}", name) if is_latest else (before.known.id, after.known.id)
    return f"eval-pipeline compare {' '.join(sides)} --suite {after.suite}"
