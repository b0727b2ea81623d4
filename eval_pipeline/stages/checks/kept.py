"""The verdict on a suite's gold, kept: it takes long, and is the same for the same cases and the same code."""

import json
from pathlib import Path

from eval_pipeline import __version__
from eval_pipeline.core.ids import canonical_json, json_hash
from eval_pipeline.stages.checks.verdicts import ENDS_CHECKED, Verdict, check_ends
from eval_pipeline.stages.score import scorer_versions
from eval_pipeline.store.durable import make_folders, replace_durably, temporary_path, write_error
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import CASES
from eval_pipeline.workspace.progress import SILENT
from eval_pipeline.workspace.workspace import Progress, Workspace


def ends_of_suite(workspace: Workspace, suite: str, progress: Progress = SILENT) -> Verdict:
    """`check_ends` of the suite's cases in the record; not again where it held for the same cases and versions.

    Raises:
        StoreError: the verdict cannot be written.
    """
    track, place = workspace.track(suite), workspace.home.checked / f"{suite}.json"
    header = workspace.record.header(CASES, RecordKey.of_suite(suite))
    assert header is not None
    versions = [dict(track.versions), scorer_versions(track), __version__]
    made_from = json_hash([header.content_hash, ENDS_CHECKED, *versions])
    if (known := _known(place, made_from)) is not None:
        return known
    found = check_ends(track, workspace.cases(suite), ENDS_CHECKED, progress, f"{suite} · checking the gold")
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
