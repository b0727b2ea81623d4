"""Tables about the gold for pages."""

from collections.abc import Iterator, Sequence

from eval_pipeline.core import shown
from eval_pipeline.reports.contents.gold import Row, gold_tables, suspects_table, undecided
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.html.render import Sheet, sheet_of

_MOST_SUSPECTS = 50


def gold_sheets(evaluation: Evaluation) -> Iterator[Sheet]:
    """Yields tables of figures with and without overrides, of overrides and of suspects; empty tables are left out."""
    yield from map(sheet_of, gold_tables(evaluation))
    if evaluation.suspects:
        yield suspects_sheet(evaluation.partition.suite, evaluation.suspects)


def suspects_sheet(suite: str, suspects: Sequence[Row]) -> Sheet:
    """Returns a table of the most doubtful turns that nobody has decided on yet."""
    found = undecided(suspects)
    turns = len({row["turn_id"] for row in found})
    more = f"; the first {_MOST_SUSPECTS} of {len(found):,} reasons" if len(found) > _MOST_SUSPECTS else ""
    caption = f"Suspected gold: {shown.turns(turns)} to look at{more}"
    return sheet_of(suspects_table(suite, found[:_MOST_SUSPECTS], caption))
