"""Field mappings for imports: `--map case_id=record_id`, with our name on the left."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Json
from eval_pipeline.operations.recorded.rows import FIELD_NAMES
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Acts

TURN_ID = "turn_id"
"""Our name for a turn's public id, which may be given instead of case and index."""
NO_ANSWER = "the log has no answer"
"""Error of an entry in which a reader of logs found none."""
_OURS = (*FIELD_NAMES, TURN_ID)
_MEANT = tuple(name for name in FIELD_NAMES if name not in ("trace_id", "span_id", "trajectory"))
"""Fields that a misspelt name may mean; `record_id` is more like some than like `case_id`, and never means them."""
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """The mapping given by `--map` and `--ignore`.

    Attributes:
        fields: our name → path in their entry: `record_id`, `metadata.record_id`, `resps.0.0`.
        ignored: fields to ignore, even if they have one of our names; `*` for all that do not.
    """

    fields: Mapping[str, str]
    ignored: Collection[str] = ()

    @classmethod
    def of(cls, told: Iterable[str], ignored: Iterable[str] = ()) -> "FieldMapping":
        """Parses the options. Raises UsageError for invalid mappings and for names that are not ours."""
        fields: dict[str, str] = {}
        for text in told:
            ours, equals, theirs = (part.strip() for part in text.partition("="))
            if not (ours and equals and theirs):
                raise UsageError(f"--map '{text}': expected OURS=THEIRS, e.g. case_id=record_id")
            if ours not in _OURS:
                swapped = f"; our name stands on the left: --map {theirs}={ours}" if theirs in _OURS else ""
                raise UsageError(f"--map '{text}': '{ours}' is not a known field{swapped or nearest(ours, _OURS)}")
            if ours in fields:
                raise UsageError(f"--map: '{ours}' is mapped twice, to '{fields[ours]}' and '{theirs}'")
            fields[ours] = theirs
        return cls(fields, tuple(ignored))

    def applied(self, given: Mapping[str, Json], found: Mapping[str, Json]) -> dict[str, Json]:
        """Returns an entry's values under our names; mapped fields take precedence."""
        row = {name: value for name, value in given.items() if name not in self.ignored}
        taken = {path.split(".")[0] for path in self.fields.values()} if given is found else set()
        for name in taken - set(self.fields):
            row.pop(name, None)
        for ours, path in self.fields.items():
            row.pop(ours, None)
            if (value := value_at(found, path)) is not _MISSING and value is not None:
                row[ours] = value
        if row.get("error") == NO_ANSWER and any(name in row for name in ("response", "answer", "sql")):
            del row["error"]  # the reader did not find the answer, whose name the user knows
        return {name: value for name, value in row.items() if name in _OURS or not self._is_ignored(name)}

    def _is_ignored(self, name: str) -> bool:
        return name in self.ignored or "*" in self.ignored

    def check(self, entries: Sequence[Mapping[str, Json]]) -> None:
        """Raises UsageError if a mapped field is in no entry."""
        for ours, path in self.fields.items():
            if entries and all(value_at(entry, path) is _MISSING for entry in entries):
                names = sorted({name for entry in entries[:100] for name in paths_of(entry)})
                told = f"; it has: {', '.join(names[:30])}" + (" …" if len(names) > 30 else "")
                raise UsageError(
                    f"--map {ours}={path}: nothing in the file has a field '{path}'{nearest(path, names) or told}"
                )


def for_track(track: Track, given: Mapping[str, Json]) -> Mapping[str, Json]:
    """Returns what a log tells of an answer as the track reads it: the whole attempt of an agent, or what it said last.

    A log may tell both, as it does not know for which suite it is read.
    """
    if "trajectory" not in given:
        return given
    failed = given.get("error") not in (None, NO_ANSWER)
    left_out = {"response", "stop_reason", "error"} if isinstance(track, Acts) and not failed else {"trajectory"}
    return {name: value for name, value in given.items() if name not in left_out}


def value_at(found: Json, path: str) -> Any:
    """Returns the value at a dotted path of field names and list indices; `_MISSING` if there is none."""
    if isinstance(found, dict) and path in found:  # a field name may contain dots
        return found[path]
    for part in path.split("."):
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return _MISSING
    return found


def has(found: Json, path: str) -> bool:
    """Whether there is anything, even null, at a dotted path."""
    return value_at(found, path) is not _MISSING


def is_there(value: Any) -> bool:
    """Whether `value_at` found a value."""
    return value is not _MISSING and value is not None


def paths_of(found: Json, depth: int = 3) -> Iterable[str]:
    """Yields the dotted paths of an entry's fields, down to a depth."""
    if not isinstance(found, dict):
        return
    for name, value in found.items():
        yield name
        if depth > 1:
            yield from (f"{name}.{rest}" for rest in paths_of(value, depth - 1))


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean 'case_id'?`, or an empty text if no known name is similar."""
    lower = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), list(lower), n=1, cutoff=0.5)
    if not close:
        last = {one.rsplit(".", 1)[-1]: one for one in lower.values()}
        close = [last[found].lower() for found in get_close_matches(name.rsplit(".", 1)[-1].lower(), list(last), n=1)]
    return f"; did you mean '{lower[close[0]]}'?" if close else ""


def unknown_field(name: str) -> str:
    """Returns the message for a field that is not ours."""
    advice = f"--map OURS={name} says what it is, --ignore {name} leaves it out"
    return f"unknown field{nearest(name, _MEANT)} ({advice})"
