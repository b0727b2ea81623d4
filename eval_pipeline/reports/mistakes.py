"""The turns that are wrong, the most frequent kind of mistake first."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.html.drawing import kind_of
from eval_pipeline.reports.queries import where
from eval_pipeline.store import tables

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong turn.

    Attributes:
        kind: its failure mode or error class.
        row: its row of `turn_results`.
        what: what is wrong in words, if the track can say it; None otherwise.
        message: why the answer could not be used; None if it was used.
        number: place of the row in `turn_results`, from 0.
    """

    kind: str
    row: Mapping[str, object]
    what: str | None
    message: str | None
    number: int

    @property
    def place(self) -> Place:
        """The turn's id and the sample number."""
        return str(self.row["turn_id"]), int(str(self.row["sample"]))


def mistakes(evaluation: Evaluation) -> list[Mistake]:
    """Returns the wrong turns, the most frequent kind first, within a kind in the suite's order."""
    names = ["turn_id", "sample", "failure_mode", "error_class", "error_message"]
    errors = {(row["turn_id"], row["sample"]): row for row in evaluation.read(tables.ERRORS).select(names).to_pylist()}
    told = evaluation.profile.mistakes(evaluation) if evaluation.profile.mistakes else {}
    found = []
    for number, row in enumerate(evaluation.results.to_pylist()):
        place = (row["turn_id"], row["sample"])
        if row["correct"] is not None and not row["correct"]:
            error = errors.get(place, {"failure_mode": None, "error_class": row["error_class"], "error_message": None})
            found.append(Mistake(kind_of(error), row, told.get(place), error["error_message"], number))
    often = Counter(one.kind for one in found)
    return sorted(found, key=lambda one: (-often[one.kind], one.kind))


def mistakes_query(partition: Partition) -> str:
    """Returns the query for the wrong turns."""
    columns = "r.turn_id, r.sample, coalesce(e.failure_mode, e.error_class) AS kind, r.score, r.question, r.expected"
    return (
        f"SELECT {columns}, r.answer, e.error_message FROM turn_results AS r LEFT JOIN errors AS e "
        f"USING (suite, model_version, eval_date, turn_id, sample) WHERE {where(partition, 'r')} AND NOT r.correct"
    )
