"""Mean cost of an application's recorded answers, the only basis for estimating its next ones."""

from dataclasses import dataclass
from statistics import fmean

from eval_pipeline.core.model import Partition
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ToldMeans:
    """Means over the answers that reported something.

    Attributes:
        answers: number of these answers.
        input_tokens, output_tokens, usd: per answer; None if none reported it.
    """

    answers: int
    input_tokens: float | None = None
    output_tokens: float | None = None
    usd: float | None = None


def told_so_far(workspace: Workspace, partition: Partition) -> ToldMeans:
    """Returns the means over all recorded answers of the model version to the suite. Raises StoreError."""
    names = ("input_tokens", "output_tokens", "usd")
    rows: list[dict[str, float | None]] = []
    for key in workspace.record.partitions(GENERATIONS, RecordKey(partition.suite, partition.model_version)):
        rows += workspace.record.read(GENERATIONS, key, names).to_pylist()
    rows = [row for row in rows if any(value is not None for value in row.values())]
    means = {name: [value for row in rows if (value := row[name]) is not None] for name in names}
    return ToldMeans(len(rows), **{name: fmean(values) for name, values in means.items() if values})
