"""Notes of commands: what each was asked for, what it has done, and what is due, so that the next can complete it.

A note is a file of JSON lines below the home's `commands/`, which its process keeps locked. The kernel frees the lock
when the process dies, so a note that is not locked was left by a dead process. In a bucket it is an object, with the
lease of the process instead of a lock. Notes of commands that have ended are below `commands/ended/` until `dev` has
told Dagster of them.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.workspace.homes.places import place_of
from eval_pipeline.workspace.noting.note_files import Note, stamp
from eval_pipeline.workspace.noting.noted import Entry, Noted, noted


class Command:
    """The note of this process's command; it is made with the first entry.

    Attributes:
        name: name of the command; of a Dagster run, which notes only what is due, `dagster`.
    """

    def __init__(self, home: Home, name: str) -> None:
        self.name = name
        self._home, self._entries = home, list[Entry]()
        self._note: Note | None = None

    def note(self, entry: Entry, *, durable: bool = True) -> None:
        """Adds an entry, which survives a power failure if it is durable. Raises StoreError if it cannot be written."""
        if self._note is None:
            self._note = place_of(self._home).new_note()
        if not self._entries:
            self._add({"command": self.name, "at": stamp()}, durable=False)
        self._add(entry, durable=durable)

    def done(self, entry: Entry, *, durable: bool = True) -> None:
        """Adds an entry on what has been done; if there is no room for it, the next command does it again."""
        try:
            self.note(entry, durable=durable)
        except StoreError:
            self._entries.append(entry)

    def note_run(self, run: str, partitions: Sequence[Partition], suites: Sequence[str] = (), **further: str) -> None:
        """Notes a run before it begins, of the evaluations of one model version or of comparisons of suites."""
        first = partitions[0] if partitions else None
        of = {"model_version": first.model_version if first else None}
        of["eval_date"] = first.eval_date.isoformat() if first else None
        named = [place.suite for place in partitions] or list(suites)
        self.note({"run": run, **of, "suites": named, "at": stamp(), **further})

    @property
    def noted(self) -> Noted:
        """What is noted so far."""
        return Noted(tuple(self._entries))

    def settle(self) -> None:
        """Ends the note if nothing is due any more; else, or if there is no room for that, the next command does."""
        if self._note is None or self.noted.unpublished or self.noted.uncompared:
            return
        with suppress(StoreError):
            _end(self._note, self.noted)
        self._note, self._entries = None, []

    def _add(self, entry: Entry, *, durable: bool) -> None:
        assert self._note is not None
        self._note.add(_line(entry), durable=durable)
        self._entries.append(entry)


@dataclass(frozen=True, slots=True)
class Left:
    """A note that a dead process left.

    Attributes:
        add: adds an entry.
        settle: ends the note: nothing is due any more.
    """

    noted: Noted
    add: Callable[[Entry], None]
    settle: Callable[[], None]


@contextmanager
def left_behind(home: Home) -> Iterator[tuple[list[Left], list[Noted]]]:
    """Yields the notes that dead processes left, and those of living ones.

    Within the block, no other process sees the former as left.
    """
    left, live = list[Left](), list[Noted]()
    with ExitStack() as stack:
        for note, text in place_of(home).notes(stack):
            live.append(noted(text)) if note is None else left.append(_left(note, text))
        yield left, live


def finish_first(home: Home, name: str, finish: Callable[[Sequence[Entry]], object]) -> None:
    """Completes changes of that name which dead processes left, before a command that must find them complete."""
    with left_behind(home) as (found, _):
        for left in found:
            if due := [entry for entry in left.noted.due if entry["due"] == name]:
                finish(due)
                left.settle()


def ended(home: Home) -> Iterator[tuple[str, Noted, Callable[[], None]]]:
    """Yields id and note of each command that has ended, the oldest first, and what removes the note."""
    for name, text, forget in place_of(home).ended_notes():
        yield name, noted(text), forget


def lag(home: Home) -> str:
    """Returns a sentence if the store lacks what dead processes left; otherwise nothing.

    Whether all is compared the store itself tells (`store.published.compared`), whatever was noted.
    """
    with left_behind(home) as (left, _):
        changes = [entry["due"] for one in left for entry in one.noted.due]
        partitions = [partition for one in left for partition in one.noted.unpublished]
    if changes:
        return f"the command `{changes[0]}` ended before it was done"
    if partitions:
        first, more = partitions[0], f" and {len(partitions) - 1} more" if len(partitions) > 1 else ""
        place = f"{first.suite} · {first.model_version} · {first.eval_date}{more}"
        return f"the store lags behind the record: a run ended before it published {place}"
    return ""


def _left(note: Note, text: str) -> Left:
    told = noted(text)
    torn = "" if text.endswith("\n") or not text else "\n"

    def add(entry: Entry) -> None:
        nonlocal torn
        note.add(torn + _line(entry), durable=True)
        torn = ""

    return Left(told, add, lambda: _end(note, told))


def _line(entry: Entry) -> str:
    return json.dumps(entry, ensure_ascii=False, default=_other)


def _other(value: object) -> Any:
    """Paths among the facts of a stage are told from texts."""
    return {"path": str(value)} if isinstance(value, Path) else str(value)


def _end(note: Note, told: Noted) -> None:
    """Keeps a note for Dagster if there is anything to tell: a run of which it knows nothing."""
    if told.runs:
        note.add(_line({"ended": stamp()}), durable=True)
        note.keep()
    else:
        note.drop()
