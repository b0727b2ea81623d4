"""The verdict on a suite's gold, kept: it takes long, and is the same for the same cases and the same code."""

import json
from pathlib import Path

from eval_pipeline.core.ids import canonical_json, json_hash
from eval_pipeline.stages.checks.verdicts import ENDS_CHECKED, Verdict, check_ends
from eval_pipeline.stages.code import ends_code
from eval_pipeline.store.durable import make_folders, replace_durably, temporary_path, write_error
from eval_pipeline.store.tables import CASES
from eval_pipeline.workspace.inputs import Inputs


def ends_of_suite(inputs: Inputs) -> Verdict:
    """`check_ends` of the suite's cases in the record; not again where it held for the same cases and code.

    Raises:
        StoreError: the verdict cannot be written.
    """
    track, place = inputs.track, inputs.workspace.home.checked / f"{inputs.suite}.json"
    code = inputs.workspace.fingerprints.of(check_ends, *ends_code(track)).code
    made_from = json_hash([inputs.hashes((CASES,)), ENDS_CHECKED, code])
    if (known := _known(place, made_from)) is not None:
        return known
    found = check_ends(track, inputs.cases, ENDS_CHECKED, inputs.progress, inputs.label("checking the gold"))
    if found.passed:
        _keep(place, made_from, found)
    return found


def _known(place: Path, made_from: str) -> Verdict | None:
    try:
        told = json.loads(place.read_bytes())
        return Verdict(True, str(told["text"]), dict(told["facts"])) if told["made_from"] == made_from else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it is found anew


def _keep(place: Path, made_from: str, found: Verdict) -> None:
    told = {"made_from": made_from, "text": found.text, "facts": dict(found.facts)}
    temporary = temporary_path(place)
    try:
        make_folders(place.parent)
        temporary.write_text(canonical_json(told))
        replace_durably(temporary, place)
    except OSError as error:
        raise write_error(place, error) from error
