"""Checks of gold: that of a suite, which takes long and is kept, and whether an evaluation could be scored by it."""

import json
from collections.abc import Sequence
from pathlib import Path

from eval_pipeline.core.hashing.kept import read_sealed, write_sealed
from eval_pipeline.core.ids import canonical_json, json_hash
from eval_pipeline.core.model import Case, Json
from eval_pipeline.stages.checks.ends import ENDS_CHECKED, check_ends, drawn_places
from eval_pipeline.stages.checks.verdicts import SHOWN, CheckVerdict
from eval_pipeline.stages.code import ends_code
from eval_pipeline.stages.scoring.gold import drifted_cases, unscored_turns
from eval_pipeline.store.durable import write_error
from eval_pipeline.store.tables import CASES, GOLD_OVERRIDES
from eval_pipeline.workspace.inputs import Inputs


def ends_of_suite(inputs: Inputs) -> CheckVerdict:
    """Runs `check_ends` on the suite's recorded cases, unless it passed before for the same cases and code.

    Raises:
        StoreError: the result cannot be written.
    """
    track, place = inputs.track, inputs.workspace.home.checked / f"{inputs.suite}.json"
    code = inputs.workspace.fingerprints.of(check_ends, *ends_code(track)).code
    gold = inputs.gold
    overridden = inputs.header(GOLD_OVERRIDES) if gold.actions else None
    hashes = inputs.hashes((CASES,)) | ({} if overridden is None else {"overrides": overridden.content_hash})
    made_from = json_hash([hashes, ENDS_CHECKED, code])
    if (known := _known(place, made_from)) is not None:
        return known
    turns, label = inputs.read(CASES, ["turns"])["turns"].to_pylist(), inputs.label("checking the gold")
    cases = [gold.case(case) for case in _drawn(inputs, drawn_places(turns, ENDS_CHECKED))]
    excluded = [turn for turn in gold.actions if gold.is_excluded(turn)]
    found = check_ends(track, cases, None, inputs.progress, label, excluded, sum(turns))
    if found.passed:
        _keep(place, made_from, found)
    return found


def _drawn(inputs: Inputs, places: Sequence[int]) -> list[Case]:
    """Returns the cases at these places, in this order."""
    if inputs.is_small:
        return [inputs.cases[place] for place in places]
    ids = inputs.case_ids.take(places).to_pylist()
    found = {case.id: case for part in inputs.parts() for case in part.cases_with(ids)}
    return [found[name] for name in ids]


def _known(place: Path, made_from: str) -> CheckVerdict | None:
    text = read_sealed(place)
    told = json.loads(text) if text else {}
    return CheckVerdict(True, told["text"], told["facts"]) if told.get("made_from") == made_from else None


def _keep(place: Path, made_from: str, found: CheckVerdict) -> None:
    told = {"made_from": made_from, "text": found.text, "facts": dict(found.facts)}
    try:
        write_sealed(place, canonical_json(told))
    except OSError as error:
        raise write_error(place, error) from error


def check_gold_usable(inputs: Inputs) -> CheckVerdict:
    """Checks that every turn could be scored, by gold that gives what it gave when the suite was read."""
    unscored, moved = unscored_turns(inputs), drifted_cases(inputs)
    facts: dict[str, Json] = {"unscored": len(unscored), "drifted": len(moved)}
    examples = dict.fromkeys((*(f"{case}: {why}" for case, why in unscored), *(f"{case}: drifted" for case in moved)))
    facts["examples"] = list(examples)[:SHOWN]
    if not examples:
        return CheckVerdict(
            True, "the gold of every turn could be used, and gave what it gave when the suite was read", facts
        )
    parts = [f"the gold of {len(unscored)} turns does not hold, so they cannot be scored"] * (len(unscored) > 1)
    parts += ["the gold of 1 turn does not hold, so it cannot be scored"] * (len(unscored) == 1)
    of = f"{len(moved)} turn{'s' * (len(moved) > 1)}"
    parts += [f"the gold of {of} gave another result than when the suite was read"] * bool(moved)
    return CheckVerdict(False, "; ".join(parts), facts)
