"""What an aggregate is: a table of an evaluation, and the functions that make it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.ids import json_hash
from eval_pipeline.store.schemas import Table
from eval_pipeline.workspace.inputs import Inputs

if TYPE_CHECKING:
    from eval_pipeline.analysis.aggregates.base import Turns

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate table and how its rows are computed.

    Attributes:
        rows: computes the rows from the evaluation's turns; without turns, rows have null numbers and a reason.
        headline: returns the most important numbers of those rows.
        reads: tables of the record that it reads in addition to those of scored turns.
        version: if given, used instead of the code's fingerprint: results are declared unchanged although the code
            changes.
        scores: whether it runs metrics itself, so that their code matters.
        needs: columns of `<track>_turns`; tracks without them do not have this aggregate.
        listed: whether page and workbook list its rows as they are, as for aggregates of plug-ins.
        knows_draws: whether it takes into account that turns were drawn with unequal probabilities (docs/adaptive.md);
            other aggregates get no turns of such an evaluation, and give that as the reason.
        beside: a further table that is made with it, and its rows.
    """

    table: Table
    rows: Callable[["Turns"], list[Row]]
    headline: Callable[[Sequence[Row]], Mapping[str, Any]]
    version: str = ""
    reads: tuple[Table, ...] = ()
    needs: tuple[str, ...] = ()
    scores: bool = False
    listed: bool = False
    knows_draws: bool = False
    beside: "tuple[Table, Callable[[Turns], list[Row]]] | None" = None

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table that the aggregate makes, its own first."""
        return (self.table,) if self.beside is None else (self.table, self.beside[0])

    def fits(self, tables: Sequence[Table]) -> bool:
        """Whether turns with these tables can have this aggregate."""
        return set(self.needs) <= {column.name for table in tables for column in table.columns}


def options_of(inputs: Inputs) -> dict[str, str]:
    """Returns what decides an aggregate in addition to the turns: a hash of the suite's options."""
    return {"options": json_hash(inputs.options)}
