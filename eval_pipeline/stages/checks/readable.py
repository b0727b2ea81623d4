"""Checks that the answers of an evaluation could be read; otherwise its accuracy is meaningless."""

from collections import Counter
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from eval_pipeline.core import shown
from eval_pipeline.core.covering.coverage import Place, turns_reached
from eval_pipeline.core.model import Json
from eval_pipeline.core.system.programs import CRASHED
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.store.coverage import tries_of
from eval_pipeline.store.tables import GENERATIONS, TURN_RESULTS
from eval_pipeline.tracks.capabilities import Acts
from eval_pipeline.workspace.inputs import Inputs

WARN_BELOW, FAIL_BELOW = 0.95, 0.5
"""Shares of the asked turns below which the check warns, and fails."""


@dataclass(frozen=True, slots=True)
class Readability:
    """How many answers of an evaluation could be read.

    Attributes:
        asked, readable: numbers of turns and samples, as in `core.coverage.Reached`.
        simulated: whether answers come from a stand-in; these are not judged, as some give no answer on purpose.
        crashed: where the user's own program failed; unless it is right all the same, such a turn is not readable.
    """

    asked: int
    readable: int
    simulated: bool
    crashed: frozenset[Place] = frozenset()

    @property
    def share(self) -> float:
        """Share of the asked turns that are readable; 1 if nothing was asked."""
        return self.readable / self.asked if self.asked else 1.0

    @property
    def low(self) -> bool:
        """Whether the share is low enough for a warning."""
        return not self.simulated and self.share < WARN_BELOW


def readability(inputs: Inputs) -> Readability:
    """Computes the readability of an evaluation from the record."""
    by_part = (turns_reached(tries_of(part.read_within)).values() for part in inputs.parts())
    reached = Counter(chain.from_iterable(by_part))
    simulated = bool(pc.any(inputs.read(GENERATIONS, ["simulated"])["simulated"]).as_py())
    asked = sum(count for turn, count in reached.items() if turn.asked)
    readable = sum(count for turn, count in reached.items() if turn.readable)
    crashed = _crashed(inputs)
    return Readability(asked, readable - len(crashed), simulated, crashed)


def _crashed(inputs: Inputs) -> frozenset[Place]:
    if not isinstance(inputs.track, Acts):
        return frozenset()
    ended = inputs.read(GENERATIONS, ["turn_id", "sample", "stop_reason"])
    failed = ended.filter(pc.equal(ended["stop_reason"], CRASHED))
    if not failed.num_rows:
        return frozenset()
    scored = inputs.read(TURN_RESULTS, ["turn_id", "sample", "correct"])
    return _places(failed) - _places(scored.filter(scored["correct"]))


def _places(rows: pa.Table) -> frozenset[Place]:
    return frozenset(zip(rows["turn_id"].to_pylist(), rows["sample"].to_pylist(), strict=True))


def check_readable(inputs: Inputs) -> CheckVerdict:
    """Checks that nearly all answers could be read; below 95% it warns, below 50% it fails."""
    found = readability(inputs)
    facts: dict[str, Json] = {"asked": found.asked, "readable": found.readable, "share": round(found.share, 4)}
    answers = shown.counted(found.asked, "answer", "answers")
    if found.simulated:
        return CheckVerdict(
            True, "these are a stand-in's answers, not a model's: how many can be read is not judged", facts
        )
    if not found.low:
        return CheckVerdict(True, f"{found.readable:,} of {answers} can be read", facts)
    # Imported here: usually all can be read, and there is nothing to advise.
    from eval_pipeline.stages.attempts.advice import advice
    from eval_pipeline.stages.attempts.seen import SEEN_COLUMNS, counted, example, seen_in_rows

    seen = seen_in_rows(inputs.read(GENERATIONS, SEEN_COLUMNS).to_pylist(), found.crashed)
    hints: list[str] = []
    if inputs.place.model_version in inputs.workspace.model_versions:  # a removed one needs no advice
        hints = advice(inputs.track, inputs.version, seen)
    text = f"only {found.readable:,} of {answers} can be read ({counted(seen)})"
    warning = found.share >= FAIL_BELOW
    if not warning:
        text += ". The figures tell of the configuration rather than of the model"
    return CheckVerdict(False, ": ".join(filter(None, [text, "; ".join(hints)])), facts, warning, example(seen[0]))
