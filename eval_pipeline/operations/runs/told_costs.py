"""Mean cost of an application's recorded answers, the only basis for estimating its next ones."""

from dataclasses import dataclass
from statistics import fmean
from typing import Any

from eval_pipeline.core.ids import parse_json
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
        calls: calls of the model in an agent's attempt; likewise.
    """

    answers: int
    input_tokens: float | None = None
    output_tokens: float | None = None
    usd: float | None = None
    calls: float | None = None


def told_so_far(workspace: Workspace, partition: Partition, *, acts: bool = False) -> ToldMeans:
    """Returns the means over all recorded answers of the model version to the suite. Raises StoreError.

    `acts`: these are attempts of an agent, each with several calls.
    """
    names = ("input_tokens", "output_tokens", "usd", *(["artefact"] if acts else []))
    rows: list[dict[str, Any]] = []
    for key in workspace.record.partitions(GENERATIONS, RecordKey(partition.suite, partition.model_version)):
        rows += workspace.record.read(GENERATIONS, key, names).to_pylist()
    for row in rows if acts else ():
        row["calls"] = _model_calls(row.pop("artefact"))
    rows = [row for row in rows if any(value is not None for value in row.values())]
    known = {name: None for row in rows for name in row}
    means = {name: [value for row in rows if (value := row[name]) is not None] for name in known}
    return ToldMeans(len(rows), **{name: fmean(values) for name, values in means.items() if values})


def _model_calls(artefact: str | None) -> int | None:
    """Returns the number of calls of the model in a trajectory; None without any."""
    told = parse_json(artefact) if artefact else None
    steps = told.get("steps") if isinstance(told, dict) else None
    return sum(step["kind"] == "model" for step in steps or ()) or None
