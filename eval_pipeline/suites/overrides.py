"""Reads `gold_overrides.yaml`, in which people override the gold of turns, and applies it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.ids import json_hash, parse_json, turn_id
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.core.reading.complaints import complaints
from eval_pipeline.core.reading.entries import FileEntry, problem_at, read_entries
from eval_pipeline.suites.headers import OVERRIDES_FILE, SuiteSource
from eval_pipeline.tracks.base import CaseError, Track
from eval_pipeline.tracks.capabilities import Audits

Action = Literal["corrected", "excluded", "both"]
CORRECTED, EXCLUDED, BOTH = "corrected", "excluded", "both"


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("expected a text that says it, found none")
    return text.strip()


_Words = Annotated[str, Field(strict=True), AfterValidator(_said)]


class OverrideFile(BaseModel):
    """An entry of the file.

    Attributes:
        turn: `<case>#<index>`, or the turn's public id.
        action: `corrected`: `gold` is right instead; `both`: either gold is right; `excluded`: the turn is in no
            figure.
        who, why: who decided it, and the reason.
        gold: fields of the turn as in the case file; others stay as in the suite.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    turn: _Words
    action: Action
    who: _Words
    why: _Words
    gold: dict[str, Json] | None = None

    @model_validator(mode="after")
    def _gold_fits_action(self) -> "OverrideFile":
        if self.action == EXCLUDED and self.gold is not None:
            raise ValueError("a turn that is excluded has no 'gold'")
        if self.action != EXCLUDED and not self.gold:
            raise ValueError(f"'action: {self.action}' needs 'gold', the fields of the turn that are right")
        return self


@dataclass(frozen=True, slots=True)
class Override:
    """An override of the gold of a turn.

    Attributes:
        action: `corrected`, `excluded` or `both`.
        gold: replaced fields of the turn in the case file; None if it is excluded.
        line: line in `gold_overrides.yaml`.
    """

    turn_id: str
    case_id: str
    turn_index: int
    action: str
    who: str
    why: str
    gold: Mapping[str, Json] | None
    line: int


def override_from_row(row: Mapping[str, Any]) -> Override:
    """Restores an override from a row of `gold_overrides`."""
    names = ("turn_id", "case_id", "turn_index", "action", "who", "why")
    gold = None if row["gold"] is None else parse_json(row["gold"])
    return Override(**{name: row[name] for name in names}, gold=gold, line=row["source_line"])


@dataclass(frozen=True)
class ScoredGold:
    """The gold used for scoring.

    Attributes:
        cases: case id → corrected case, for cases with a corrected turn.
        alternatives: turn id → case with the second right answer, for turns with two right answers.
        actions: turn id → action of its override.
    """

    cases: Mapping[str, Case] = field(default_factory=dict)
    alternatives: Mapping[str, Case] = field(default_factory=dict)
    actions: Mapping[str, str] = field(default_factory=dict)

    def case(self, case: Case) -> Case:
        """Returns the case as it is scored; the same object if nothing in it is corrected."""
        return self.cases.get(case.id, case)

    def is_excluded(self, turn: str) -> bool:
        """Whether the turn is in no figure."""
        return self.actions.get(turn) == EXCLUDED

    def accepted(self, case: Case, turn: Turn) -> list[tuple[Case, Turn]]:
        """Returns the accepted golds of a turn, each as a case and the turn in it."""
        other = self.alternatives.get(turn.id)
        return [(case, turn)] if other is None else [(case, turn), (other, other.turns[turn.index])]


NOTHING_OVERRIDDEN = ScoredGold()


def read_overrides(
    source: SuiteSource, track: Track, cases: Sequence[Case], contents: Mapping[str, str], shared: Any
) -> tuple[tuple[Override, ...], ScoredGold]:
    """Reads and checks the overrides of a suite, and applies them.

    Args:
        source: the suite.
        track: its track.
        cases: the cases of its files.
        contents: case id → the case in the suite's file format, as JSON.
        shared: what the cases have in common.

    Raises:
        InputError: lists every problem: file, line, field and what was expected.
    """
    path = source.folder / OVERRIDES_FILE
    if not path.is_file():
        return (), NOTHING_OVERRIDDEN
    turns = {turn.id: (case, turn) for case in cases for turn in case.turns}
    overrides: list[Override] = []
    entries: dict[str, FileEntry] = {}
    problems: list[Problem] = []
    for entry in read_entries(path, path.relative_to(source.folder.parent).as_posix()):
        if isinstance(entry, Problem):
            problems.append(entry)
            continue
        try:
            found = _override(track, source.name, OverrideFile.model_validate(entry.raw), entry, turns)
            if found.turn_id in entries:
                first = f"{entries[found.turn_id].file}:{entries[found.turn_id].line}"
                raise CaseError([(("turn",), f"a second override of '{found.turn_id}', first at {first}")])
        except ValidationError as error:
            problems += [problem_at(entry, *wrong) for wrong in complaints(error, OverrideFile)]
        except CaseError as error:
            problems += [problem_at(entry, place, message) for place, message in error.problems]
        else:
            entries[found.turn_id] = entry
            overrides.append(found)
    for found in overrides:
        case, turn = turns[found.turn_id]
        problems += _wrong_gold(track, found, entries[found.turn_id], case, turn, contents[case.id], shared)
    if problems:
        raise InputError(problems)
    return tuple(overrides), scored_gold(track, source.name, overrides, {c.id: c for c in cases}, contents, shared)


def scored_gold(
    track: Track,
    suite: str,
    overrides: Sequence[Override],
    cases: Mapping[str, Case],
    contents: Mapping[str, str],
    shared: Any,
) -> ScoredGold:
    """Applies overrides; `cases` and `contents` are by id and contain the overridden cases."""
    raws: dict[str, Json] = {}
    for found in overrides:
        if found.action == CORRECTED:
            raw = raws.get(found.case_id) or parse_json(contents[found.case_id])
            raws[found.case_id] = with_gold(track, raw, found)

    def read(case_id: str, raw: Json) -> Case:
        case = cases[case_id]
        return track.read_case(raw, suite, case.source_file, case.source_line, shared)

    others = {
        found.turn_id: read(
            found.case_id, with_gold(track, raws.get(found.case_id) or parse_json(contents[found.case_id]), found)
        )
        for found in overrides
        if found.action == BOTH
    }
    corrected = {case_id: read(case_id, raw) for case_id, raw in raws.items()}
    return ScoredGold(corrected, others, {found.turn_id: found.action for found in overrides})


def with_gold(track: Track, raw: Json, override: Override) -> Json:
    """Returns a case in its file format with the gold of one turn replaced; the original is not changed."""
    assert isinstance(track, Audits) and override.gold is not None
    place = track.gold_place(override.turn_index)
    return _replaced(raw, place if place and place[0] in raw else (), override.gold)  # a case may be its only turn


def _replaced(raw: Json, place: Sequence[str | int], gold: Mapping[str, Json]) -> Json:
    if not place:
        merged = {**raw, **gold}
        return {name: value for name, value in merged.items() if name not in gold or value is not None}
    head, rest = place[0], place[1:]
    if isinstance(raw, list):
        return [_replaced(item, rest, gold) if index == head else item for index, item in enumerate(raw)]
    return {name: _replaced(value, rest, gold) if name == head else value for name, value in raw.items()}


def _override(
    track: Track, suite: str, said: OverrideFile, entry: FileEntry, turns: Mapping[str, tuple[Case, Turn]]
) -> Override:
    """Converts an entry to an override. Raises CaseError if the turn or a field of its gold does not exist."""
    name = said.turn if said.turn in turns else _public(suite, said.turn)
    if name not in turns:
        raise CaseError([(("turn",), f"the suite has no turn '{said.turn}'; expected <case>#<index>, counted from 0")])
    if said.gold is not None:
        allowed = track.gold_fields if isinstance(track, Audits) else ()
        if not allowed:
            told = f"the track {track.name} does not say what its gold is made of; only 'excluded' is possible"
            raise CaseError([(("action",), told)])
        unknown = [
            (("gold", field), f"unknown field; the gold of track {track.name} has {', '.join(allowed)}")
            for field in said.gold
            if field not in allowed
        ]
        if unknown:
            raise CaseError(unknown)
    case, turn = turns[name]
    return Override(name, case.id, turn.index, said.action, said.who, said.why, said.gold, entry.line)


def _public(suite: str, name: str) -> str:
    case, _, index = name.rpartition("#")
    return turn_id(suite, case, int(index)) if index.isdecimal() else name


def _wrong_gold(
    track: Track, found: Override, entry: FileEntry, case: Case, turn: Turn, content: str, shared: Any
) -> list[Problem]:
    """Returns problems with the gold of an override: the track cannot read it, or it equals the suite's gold."""
    if found.gold is None:
        return []
    place = cast("Audits[Any, Any]", track).gold_place(found.turn_index)
    try:
        other = track.read_case(
            with_gold(track, parse_json(content), found),
            turn.id.partition("/")[0],
            case.source_file,
            case.source_line,
            shared,
        )
    except CaseError as error:
        return [problem_at(entry, ("gold", *where[len(place) :]), message) for where, message in error.problems]
    except ValueError as error:
        return [problem_at(entry, ("gold",), str(error))]
    if json_hash(track.gold_json(other.turns[turn.index])) == json_hash(track.gold_json(turn)):
        return [problem_at(entry, ("gold",), "is the gold that the suite has already; expected another one")]
    return []
