"""What the answers of an application that are on record took: all that is known of what its next ones will."""

from dataclasses import dataclass
from statistics import fmean

from eval_pipeline.core.model import Partition
from eval_pipeline.store.tables import GENERATIONS
from eval_pipeline.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ToldMeans:
    """Means of the answers that told something.

    Attributes:
        answers: how many there are.
        input_tokens, output_tokens, usd: of one answer; None where none told it.
    """

    answers: int
    input_tokens: float | None = None
    output_tokens: float | None = None
    usd: float | None = None


def told_so_far(workspace: Workspace, partition: Partition) -> ToldMeans:
    """What the model version's answers to the suite told, of all dates on record. Raises StoreError."""
    names = ("input_tokens", "output_tokens", "usd")
    rows: list[dict[str, float | None]] = []
    for key in workspace.record.partitions(GENERATIONS):
        if (key.suite, key.model_version) == (partition.suite, partition.model_version):
            rows += workspace.record.read(GENERATIONS, key, names).to_pylist()
    rows = [row for row in rows if any(value is not None for value in row.values())]
    means = {name: [value for row in rows if (value := row[name]) is not None] for name in names}
    return ToldMeans(len(rows), **{name: fmean(values) for name, values in means.items() if values})
