"""The stage `evidence`: compares the last attempt at each turn with the gold.

Measured times go into a table of their own: everything else is the same whenever and wherever it is gathered.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, islice

from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Evidence, Json
from eval_pipeline.stages.attempts.rows import attempted_turns
from eval_pipeline.stages.scoring.keeping import gather_kept
from eval_pipeline.store.tables import EVIDENCE, GENERATIONS, MEASURED_EVIDENCE
from eval_pipeline.tracks.abilities import measured_kinds_of
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.outputs import Outputs

EvidenceByTurn = Mapping[tuple[str, int], Sequence[Evidence]]
"""(turn id, sample) → evidence."""
_BOTH = (EVIDENCE, MEASURED_EVIDENCE)
_AT_ONCE = 32
"""Number of turns that a track receives at once; fewer if their answers are long."""


def gather_evidence(inputs: Inputs, outputs: Outputs) -> None:
    """Compares every turn's last attempt with its gold and records the result."""
    rows, measured_rows = outputs.rows(EVIDENCE), outputs.rows(MEASURED_EVIDENCE)
    measured = measured_kinds_of(inputs.track)
    found: dict[tuple[str, int], Sequence[Evidence]] = {}
    generated, small = inputs.header(GENERATIONS), inputs.is_small
    turns = inputs.counted("evidence", attempted_turns(inputs), generated.rows if generated else 0)
    at_once = inputs.together(_AT_ONCE)
    while some := list(islice(turns, at_once)):
        gathered = gather_kept(inputs, [(case, turn, made[-1][1]) for case, turn, _, made in some])
        for (case, turn, sample, _), pieces in zip(some, gathered, strict=True):
            place = {"turn_id": turn.id, "case_id": case.id, "turn_index": turn.index, "sample": sample}
            if small:
                found[turn.id, sample] = pieces
            for evidence in pieces:
                said = {"kind": evidence.kind, "verdict": evidence.verdict, "value": evidence.value}
                row = place | said | {"details": json_text(dict(evidence.details))}
                (measured_rows if evidence.kind in measured else rows).add(row)
    if small:
        outputs.keep(_BOTH, found)


def evidence_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns the number of comparisons."""
    return {"rows": sum(header.rows for table in _BOTH if (header := inputs.header(table)))}


def load_evidence(inputs: Inputs) -> EvidenceByTurn:
    """Returns the evidence of an evaluation, or of its cases within a range."""

    def read() -> EvidenceByTurn:
        found: defaultdict[tuple[str, int], list[Evidence]] = defaultdict(list)
        columns = ["turn_id", "sample", "kind", "verdict", "value", "details"]
        for table in _BOTH:
            for row in chain.from_iterable(group.to_pylist() for group in inputs.rows_within(table, columns)):
                details = parse_json(row.pop("details"))
                found[row["turn_id"], row["sample"]].append(Evidence(**row, details=details))
        return found

    return read() if inputs.within is not None else inputs.remembered(_BOTH, read)
