"""What evaluations of a run stand beside: the baseline of a gate, and the evaluations before them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from eval_pipeline.core.model import Partition

if TYPE_CHECKING:
    from eval_pipeline.operations.ci.gates import GateVerdict
    from eval_pipeline.workspace.workspace import Workspace

Held = Mapping[Partition, object]
"""What tells whether an evaluation changes: its id, and the hash of its scored turns; None if it is not scored."""


def held_now(workspace: "Workspace", partitions: Sequence[Partition]) -> Held:
    """Returns what the record holds of evaluations."""
    from eval_pipeline.store.record import RecordKey
    from eval_pipeline.store.tables import TURN_RESULTS
    from eval_pipeline.workspace.evaluations import id_in_place

    scored = {place: workspace.record.header(TURN_RESULTS, RecordKey.of(place)) for place in partitions}
    return {
        place: (id_in_place(workspace, place), found.content_hash) if found else None for place, found in scored.items()
    }


def beside_lines(workspace: "Workspace", partitions: Sequence[Partition], held: Held) -> Iterator[str]:
    """Yields a line for each evaluation that was held otherwise and has one before it."""
    now = held_now(workspace, partitions)
    for place in (found for found in partitions if now[found] != held[found]):
        from eval_pipeline.analysis.comparisons.chosen.standing import beside_text

        if text := beside_text(workspace, place):
            yield f"before:   {place.suite}, {place.model_version}: {text}"


def baseline_verdicts(workspace: "Workspace", partitions: Sequence[Partition], baseline: str) -> "list[GateVerdict]":
    """Returns a verdict for each evaluation that is not of the baseline itself: whether it is worse."""
    from eval_pipeline.analysis.baseline import baseline_verdict, is_drawn
    from eval_pipeline.operations.ci.gates import GateVerdict

    against = [place for place in partitions if place.model_version != baseline or is_drawn(workspace, place)]
    name = f"not worse than {baseline}"
    failures = ((place, baseline_verdict(workspace, place, baseline)) for place in against)
    return [GateVerdict(place.suite, place.model_version, name, failure) for place, failure in failures]
