"""Uses what earlier evaluations have found about the same answers and the same gold; tracks say of what (`Keeps`)."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar

from eval_pipeline.core.ids import json_text, parse_json
from eval_pipeline.core.model import Attempt, Case, ErrorClass, Evidence, Failed, Json, Outcome, Ran, Turn
from eval_pipeline.core.system.stopped import times_stopped
from eval_pipeline.stages.code import kept_code
from eval_pipeline.stages.scoring.gold import problems_of_cases
from eval_pipeline.tracks.abilities import gather_all, joined, validation_of
from eval_pipeline.tracks.base import ArtefactError, Executor, ValidationRow
from eval_pipeline.tracks.capabilities import Acts, Audits, Contradiction, Keeps, Validates
from eval_pipeline.workspace.homes.kept import (
    DOUBTS,
    EVIDENCE,
    MEASUREMENTS,
    OUTCOMES,
    VALIDATIONS,
    KeptValues,
    steady,
)
from eval_pipeline.workspace.inputs import Inputs

Gathering = Sequence[tuple[Case, Turn, Attempt]]
_FICKLE = (ErrorClass.TIMEOUT, ErrorClass.MEMORY, ErrorClass.SANDBOX, ErrorClass.OTHER)
"""Classes of errors that may be the machine's."""


def gather_kept(inputs: Inputs, turns: Gathering) -> Sequence[tuple[Evidence, ...]]:
    """Returns the evidence for the last attempt of each turn, as `gather_all` does; what was measured stays."""
    track = inputs.track
    if not isinstance(track, Keeps):
        return gather_all(track, turns)
    kept = _kept(inputs, EVIDENCE, "compare_all", "artefact_from_json")
    keys = [_evidence_key(track, kept, *turn) for turn in turns]
    found: dict[str, Sequence[Any]] = {}
    for known_key in dict.fromkeys(key for key in keys if key):
        if (known := kept.find(known_key, _rows)) is not None:
            found[known_key] = known
    # One of several equal attempts is enough.
    missing = {key or f"{place}": place for place, key in reversed([*enumerate(keys)]) if key not in found}
    left = dict(sorted(missing.items(), key=lambda one: one[1]))
    compared = track.compare_all([turns[place] for place in left.values()])
    for name, place in left.items():
        before, pieces = times_stopped(), next(compared)
        found[name] = [*map(_told, pieces)]
        if keys[place] and times_stopped() == before:
            kept.put(name, found[name])
    assert next(compared, None) is None
    kept.bound()
    gathered = []
    for place, (key, (case, turn, final)) in enumerate(zip(keys, turns, strict=True)):
        pieces = tuple(Evidence(turn.id, final.sample, *row) for row in found[key or f"{place}"])
        gathered.append((*pieces, *_measured(inputs, track, key, (case, turn, final), pieces)))
    return gathered


def _measured(
    inputs: Inputs, track: Keeps, key: str | None, gathering: tuple[Case, Turn, Attempt], compared: Sequence[Evidence]
) -> Sequence[Evidence]:
    """Returns what `measure` does; what was measured on this machine stays, with all that decides the comparison."""
    turn, final = gathering[1:]
    if key is None or not track.measured_kinds:
        return track.measure(*gathering, compared)
    kept = _kept(inputs, MEASUREMENTS, "measure", "artefact_from_json")
    key = kept.key(key, [*os.uname()])

    def write(found: Sequence[Evidence]) -> None:
        if found:
            kept.put(key, [_told(one) for one in found])

    known = kept.find(key, _rows)
    if known is None:
        return steady(lambda: track.measure(*gathering, compared), write)
    return [Evidence(turn.id, final.sample, *row) for row in known]


def _told(one: Evidence) -> list[Json]:
    return [one.kind, one.verdict, one.value, one.details]


def _evidence_key(track: Keeps, kept: KeptValues, case: Case, turn: Turn, final: Attempt) -> str | None:
    if final.artefact is None or final.outcome is None:
        return None
    depends = track.depends_on(case, turn, final.artefact)
    return None if depends is None else kept.key(depends, told_outcome(final.outcome))


def _rows(value: Json) -> list[Json]:
    """Returns evidence as it was kept. Raises ValueError if it has another form."""
    for kind, verdict, number, details in value:
        if not (isinstance(kind, str) and isinstance(verdict, str) and isinstance(details, dict)):
            raise ValueError("not evidence")
        if number is not None and not isinstance(number, int | float):
            raise ValueError("not evidence")
    return list(value)


class KeepingExecutor:
    """Executes what was never executed before on the same data."""

    immediate: ClassVar[bool] = False

    def __init__(self, inputs: Inputs, inner: Executor) -> None:
        self._inner, self._track = inner, inputs.track
        self._kept = _kept(inputs, OUTCOMES, "executor")

    async def execute(self, artefact: Any, case: Case) -> Outcome:
        """Returns the outcome of an artefact."""
        assert isinstance(self._track, Keeps)
        depends = self._track.depends_on(case, None, artefact)
        if depends is None:
            return await self._inner.execute(artefact, case)
        key = self._kept.key(depends)
        found = self._kept.find(key, read_outcome)
        if found is not None:
            return found
        before = times_stopped()
        outcome = await self._inner.execute(artefact, case)
        if times_stopped() == before and (isinstance(outcome, Ran) or outcome.error_class not in _FICKLE):
            self._kept.put(key, told_outcome(outcome))
        return outcome


def keeping(inputs: Inputs, executor: Executor) -> Executor:
    """Returns an executor that uses what is kept, if the track keeps outcomes; what an agent did is its own."""
    keeps = isinstance(inputs.track, Keeps) and not isinstance(inputs.track, Acts)
    return KeepingExecutor(inputs, executor) if keeps else executor


def validation_kept(inputs: Inputs, artefact: Any, error: ArtefactError | None, case: Case) -> ValidationRow:
    """Returns what `validation_of` does."""
    track = inputs.track
    keeper = track if isinstance(track, Keeps) and isinstance(track, Validates) and error is None else None
    depends = None if keeper is None else keeper.depends_on(case, None, artefact)
    if depends is None:
        return validation_of(track, artefact, error, case)
    kept = _kept(inputs, VALIDATIONS, "validate")
    key = kept.key(depends)

    def write(found: ValidationRow) -> None:
        kept.put(key, [found.parsed, found.verdict, dict(found.checks), [*found.errors]])

    known = kept.find(key, _validation)
    return known if known is not None else steady(lambda: validation_of(track, artefact, error, case), write)


def _validation(told: Any) -> ValidationRow:
    parsed, verdict, checks, errors = told
    if (
        not isinstance(parsed, bool)
        or verdict not in ("valid", "suspicious", "invalid")
        or not isinstance(checks, dict)
    ):
        raise ValueError("not a validation")
    return ValidationRow(parsed, verdict, checks, tuple(map(str, errors)))


def told_outcome(outcome: Outcome) -> dict[str, Json]:
    """Returns an outcome as plain data."""
    if isinstance(outcome, Failed):
        return {"failed": outcome.error_class.value, "message": outcome.message, "tier": outcome.tier}
    return {"value": json_text(outcome.value), "tier": outcome.tier}


def read_outcome(told: Any) -> Outcome:
    """Returns an outcome from plain data. Raises ValueError, TypeError or LookupError if it is in another form."""
    if not isinstance(told["tier"], str | None):
        raise ValueError("not an outcome")
    if "failed" in told:
        return Failed(ErrorClass(told["failed"]), str(told["message"]), told["tier"])
    return Ran(parse_json(told["value"]), told["tier"])


def contradictions_kept(inputs: Inputs, case: Case) -> list[Contradiction]:
    """Returns what the track's `contradictions` does; none if it has none."""
    track = inputs.track
    if not isinstance(track, Audits):
        return []
    turns = [turn.id for turn in case.turns]
    depends = [track.depends_on(case, turn, None) for turn in case.turns] if isinstance(track, Keeps) else [None]
    if None in depends:
        return list(track.contradictions(case))
    kept = _kept(inputs, DOUBTS, "contradictions")
    key = kept.key(depends)

    def read(told: Json) -> list[Contradiction]:
        return [Contradiction(turns[place], *_checked(more)) for place, more in told]

    def write(found: list[Contradiction]) -> None:
        told = [[one.evidence, one.score, one.linted, one.of_printing] for one in found]
        kept.put(key, [[turns.index(one.turn_id), more] for one, more in zip(found, told, strict=True)])

    known = kept.find(key, read)
    return known if known is not None else steady(lambda: list(track.contradictions(case)), write)


def doubts_kept(inputs: Inputs, case: Case) -> list[Contradiction]:
    """Returns what `doubts_of` does for a case as it is scored; the record has whether the gold of others holds."""
    broken = inputs.hold("gold as corrected", lambda: problems_of_cases(inputs))
    found = [Contradiction(turn.id, broken[turn.id], 1.0) for turn in case.turns if turn.id in broken]
    return joined(found, contradictions_kept(inputs, case))


def _checked(told: Json) -> Json:
    """Returns the fields of a doubt. Raises ValueError if they have other types."""
    if [*map(type, told)] not in [[str, kind, bool, bool] for kind in (int, float)]:
        raise ValueError("not a doubt")
    return told


def _kept(inputs: Inputs, kind: str, *methods: str) -> KeptValues:
    """Returns what is kept of a kind; opened once a stage."""

    def opened() -> KeptValues:
        made_by = inputs.workspace.fingerprints.of(*kept_code(inputs, *methods))
        return KeptValues(inputs.workspace.home, kind, made_by)

    return inputs.hold(f"kept {kind}", opened)
