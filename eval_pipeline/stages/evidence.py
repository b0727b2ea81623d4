"""The stage `evidence`: compares the last attempt at each turn with the gold."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice

from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Evidence, Json
from eval_pipeline.stages.attempts.rows import attempted_turns
from eval_pipeline.store.tables import EVIDENCE, GENERATIONS
from eval_pipeline.tracks.capabilities import gather_all
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs

EvidenceByTurn = Mapping[tuple[str, int], Sequence[Evidence]]
"""(turn id, sample) → evidence."""
_AT_ONCE = 32
"""Number of turns that a track receives at once."""


def gather_evidence(inputs: Inputs, outputs: Outputs) -> None:
    """Compares every turn's last attempt with its gold and records the result."""
    rows = outputs.rows(EVIDENCE)
    found: dict[tuple[str, int], Sequence[Evidence]] = {}
    generated = inputs.header(GENERATIONS)
    turns = inputs.counted("evidence", attempted_turns(inputs), generated.rows if generated else 0)
    while some := list(islice(turns, _AT_ONCE)):
        gathered = gather_all(inputs.track, [(case, turn, made[-1][1]) for case, turn, _, made in some])
        for (case, turn, sample, _), pieces in zip(some, gathered, strict=True):
            place = {"turn_id": turn.id, "case_id": case.id, "turn_index": turn.index, "sample": sample}
            found[turn.id, sample] = pieces
            for evidence in pieces:
                said = {"kind": evidence.kind, "verdict": evidence.verdict, "value": evidence.value}
                rows.add(place | said | {"details": json_text(dict(evidence.details))})
    outputs.keep(EVIDENCE, found)


def evidence_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the number of comparisons."""
    header = inputs.header(EVIDENCE)
    return {"rows": header.rows if header else 0}


def load_evidence(inputs: Inputs) -> EvidenceByTurn:
    """Returns the evidence of an evaluation."""

    def read() -> EvidenceByTurn:
        found: defaultdict[tuple[str, int], list[Evidence]] = defaultdict(list)
        columns = ["turn_id", "sample", "kind", "verdict", "value", "details"]
        for row in inputs.read(EVIDENCE, columns).to_pylist():
            details = parse_json(row.pop("details"))
            found[row["turn_id"], row["sample"]].append(Evidence(**row, details=details))
        return found

    return inputs.remembered(EVIDENCE, read)
