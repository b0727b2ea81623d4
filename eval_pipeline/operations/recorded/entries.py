"""Reads files of recorded answers into entries."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.ids import without_surrogates
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import told_value
from eval_pipeline.core.reading.entries import read_entries
from eval_pipeline.core.reading.users_tables import BINARY_FORMATS, Unreadable, cell_text
from eval_pipeline.suites.rehearsal import rehearse_table

ROUTE_TAG = "route:"
"""Beginning of the tag that says which part of an application was asked."""


@dataclass(frozen=True, slots=True)
class LoggedTask:
    """What was asked, as a log tells it; cases of a suite can be made from these.

    Attributes:
        id: its id in the log; empty if it has none.
        question: as text.
        expected: the answers that count as right, the preferred one first; empty if the log names none.
        tags: its tags in the log.
        group: name of what it belongs to, e.g. the task of the benchmark; empty if the log names none.
        turn: number of the turn in the conversation `id`, from 0; its turns are entries that follow each other. None if
            what was asked stands alone.
        cluster: name of what it shares with others that are almost the same; empty if it shares nothing.
        sampled: how it was drawn from the traffic, as in a case of the track `text`.
    """

    id: str
    question: str
    expected: tuple[Json, ...] = ()
    tags: tuple[str, ...] = ()
    group: str = ""
    turn: int | None = None
    cluster: str = ""
    sampled: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded answer of a file, or several if it is a whole conversation.

    Attributes:
        line: line in the file, from 1; None without lines.
        place: identifies the entry in the file, e.g. `sample alder-3, epoch 2`.
        given: its values under the field names of `PredictionRow`.
        found: the entry with its own field names; `--map` looks here.
        conversation: the answers to the turns of a case, in order, if the entry is a conversation.
        fault: why it is not a valid entry; reported together with all other problems.
        task: what was asked, if the log tells it.
    """

    line: int | None
    place: str = ""
    given: Mapping[str, Json] = field(default_factory=dict)
    found: Mapping[str, Json] = field(default_factory=dict)
    conversation: tuple[str, ...] = ()
    fault: str = ""
    task: LoggedTask | None = None


def read_rows(source: Path, wanted: Collection[str], say: Callable[[str], None]) -> Iterator[Entry]:
    """Yields the rows of a JSON Lines file, a table or a list, whose field names are ours unless mapped.

    Args:
        source: in one of the formats of `core.entries`; one with another ending is read as JSON Lines.
        wanted: fields of which a table is expected to have some.
        say: gets a sentence on how a table was read.

    Raises:
        UsageError: there is no such file.
        InputError: the file cannot be read.
    """
    if not source.is_file():
        raise UsageError(f"no file {source}")
    if source.suffix.lower() in BINARY_FORMATS:
        rehearse_table(source)
    for found in read_entries(source, str(source), wanted, say, else_lines=True):
        if isinstance(found, Problem) and found.line is None:
            raise InputError([found])
        if isinstance(found, Problem):
            yield Entry(found.line, fault=f"{found.field}: {found.message}" if found.field else found.message)
        elif not isinstance(found.raw, dict):
            yield Entry(found.line, fault=f"expected a JSON object, found {told_value(found.raw)}")
        elif found.columns:
            wrong = [f"'{name}' {cell.why}" for name, cell in found.raw.items() if isinstance(cell, Unreadable)]
            row = {name: cell_text(cell) for name, cell in found.raw.items()}
            yield Entry(found.line, given=row, found=row, fault="; ".join(wrong))
        else:
            raw = without_surrogates(found.raw)
            yield Entry(found.line, given=raw, found=raw)
