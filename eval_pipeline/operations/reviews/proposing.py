"""Proposes entries for `gold_overrides.yaml` from reviews; only that file changes figures."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from eval_pipeline.analysis.reviews.answers import results_of
from eval_pipeline.analysis.reviews.making import Reviewed
from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Json, Partition, Turn
from eval_pipeline.store.durable import fsync_path, replace_durably, temporary_path, write_error
from eval_pipeline.suites.cases import SuiteCases, read_suite
from eval_pipeline.suites.headers import OVERRIDES_FILE, SuiteSource, refuse_copy
from eval_pipeline.suites.overrides import CORRECTED, EXCLUDED, Override, read_overrides
from eval_pipeline.suites.reviews.review import RIGHT, AnswerKey, Review, by_answer, verdict_of
from eval_pipeline.tracks.abilities import gold_of
from eval_pipeline.workspace.inputs import Inputs


@dataclass(frozen=True, slots=True)
class Proposals:
    """Proposals from reviews that call the gold wrong, or an answer right where the gold is not known.

    Attributes:
        entries: entries for `gold_overrides.yaml`.
        left: turn → why nothing is proposed for it.
    """

    entries: Sequence[Mapping[str, Any]]
    left: Mapping[str, str]

    def text(self) -> str:
        """Returns the entries as YAML."""
        return entries_text(self.entries)


def proposals(inputs: Inputs, reviewed: Reviewed) -> Proposals:
    """Returns the proposals from the reviews of a suite.

    A correction becomes `corrected`, no correction becomes `excluded`; where the gold is not known, the answers that
    people call right become it. The person who adds the entry to the file decides.

    Raises:
        InputError: the suite cannot be read.
    """
    found = read_suite(inputs.workspace.suite(inputs.suite))
    turns = {turn.id: turn for case in found.cases for turn in case.turns}
    golds = {name: json_hash(inputs.track.gold_json(turn)) for name, turn in turns.items()}
    decided = {override.turn_id for override in found.overrides}
    together: dict[str, list[Review]] = {}
    for review in reviewed.current:
        if review.gold_wrong:
            together.setdefault(review.turn_id, []).append(review)
    entries: list[dict[str, Any]] = []
    left: dict[str, str] = {}
    for turn, reviews in together.items():
        fresh = [one for one in reviews if one.gold_hash in (None, golds.get(turn))]
        corrections = {json_hash(one.correction): one.correction for one in fresh if one.correction is not None}
        if turn in decided:
            left[turn] = f"{OVERRIDES_FILE} has decided on it"
        elif turn not in golds:
            left[turn] = "the suite has no such turn any more"
        elif not fresh:
            left[turn] = "the gold has changed since it was reviewed"
        elif len(corrections) > 1:
            left[turn] = f"{len(corrections)} different corrections; agree on one first"
        else:
            entries.append(_entry(turn, fresh, next(iter(corrections.values()), None)))
    undecided = {name: turn for name, turn in turns.items() if name not in decided | together.keys()}
    for turn, said, gold in _right_answers(inputs, undecided, reviewed.current):
        if gold:
            entries.append(_entry(turn, said, gold))
        else:
            left[turn] = "the answer that was called right is not on record any more, or could not be read"
    return Proposals(entries, left)


def _right_answers(
    inputs: Inputs, turns: Mapping[str, Turn], reviews: Sequence[Review]
) -> Iterator[tuple[str, Sequence[Review], Mapping[str, Json]]]:
    """Yields turns whose gold is not known, the reviews that call answers right, and the gold from these."""
    said = {key: found for key, found in by_answer(reviews).items() if key.turn_id in turns}
    right = {key: found for key, found in said.items() if verdict_of(found) == RIGHT}
    wanted: dict[Partition, set[str]] = {}
    for one in chain.from_iterable(right.values()):
        wanted.setdefault(Partition(inputs.suite, one.model_version, one.eval_date), set()).add(one.turn_id)
    results: dict[AnswerKey, Json] = {}
    for partition, names in sorted(wanted.items(), key=str):
        results |= results_of(inputs.anew(partition=partition), names)
    for name in dict.fromkeys(key.turn_id for key in right):
        keys = [key for key in right if key.turn_id == name]
        gold = gold_of(inputs.track, turns[name], [results[key] for key in keys if key in results])
        if gold is not None:
            yield name, [one for key in keys for one in right[key] if one.verdict == RIGHT], gold


def write_proposals(source: SuiteSource, found: Proposals) -> Path:
    """Appends the entries to the suite's `gold_overrides.yaml`, whose existing text is not changed.

    Raises:
        UsageError: nothing can be appended to the file in its present form, or an entry is wrong.
        StoreError: the file cannot be written.
    """
    refuse_copy(source.folder)
    path = source.folder / OVERRIDES_FILE
    suite = read_suite(source)
    before = path.read_text("utf-8") if path.is_file() else ""
    text = before + ("" if not before or before.endswith("\n") else "\n") + found.text()
    try:
        after = _read(source, suite, text)
    except InputError as error:
        raise UsageError(f"a proposal cannot be added; add it by hand: {error}") from error
    if [one.turn_id for one in after] != [
        *(one.turn_id for one in suite.overrides),
        *(e["turn"] for e in found.entries),
    ]:
        raise UsageError(f"{path} is not a single list of entries; add the printed entries by hand")
    temporary = temporary_path(path)
    try:
        temporary.write_text(text, "utf-8")
        fsync_path(temporary)
        replace_durably(temporary, path)
    except OSError as error:
        raise write_error(path, error) from error
    return path


def entries_text(entries: Sequence[Mapping[str, Any]]) -> str:
    """Returns entries as YAML, with quotes where YAML would misread people's text."""
    return yaml.safe_dump([dict(entry) for entry in entries], sort_keys=False, allow_unicode=True) if entries else ""


def _entry(turn: str, reviews: Sequence[Review], correction: Mapping[str, Any] | None) -> dict[str, Any]:
    notes = dict.fromkeys(review.note.strip() for review in reviews if review.note.strip())
    entry: dict[str, Any] = {"turn": turn, "action": EXCLUDED if correction is None else CORRECTED}
    told = "called wrong" if any(review.gold_wrong for review in reviews) else "an answer called right"
    entry |= {"who": ", ".join(dict.fromkeys(review.who for review in reviews))}
    entry |= {"why": "; ".join(notes) or f"{told} in a review, without a note"}
    return entry if correction is None else entry | {"gold": dict(correction)}


def _read(source: SuiteSource, suite: SuiteCases, text: str) -> Sequence[Override]:
    """Parses and checks the text as overrides of the suite."""
    raws = {case.id: content for case, content in zip(suite.cases, suite.contents, strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        aside = replace(source, folder=Path(folder) / source.folder.name)
        aside.folder.mkdir()
        (aside.folder / OVERRIDES_FILE).write_text(text, "utf-8")
        return read_overrides(aside, source.track(), suite.cases, raws, suite.shared)[0]
