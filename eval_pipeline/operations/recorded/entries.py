"""Reading a file of recorded answers: entries, each with what it gives under our names and under its own."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.foreign import read_text
from eval_pipeline.core.model import Json


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded answer of a file; of a log whose answers are whole conversations several.

    Attributes:
        line: in the file, from 1; None where it has none.
        place: what names the entry in the file beside the line, e.g. `sample alder-3, epoch 2`.
        given: what it says under the names of `PredictionRow`.
        found: the entry itself, by its own names; what `--map` looks in.
        fault: why what stands there is no entry; told with all that is wrong with the others.
        conversation: the answers to the turns of a case, one after the other, where the entry is a conversation.
    """

    line: int | None
    place: str = ""
    given: Mapping[str, Json] = field(default_factory=dict)
    found: Mapping[str, Json] = field(default_factory=dict)
    conversation: tuple[str, ...] = ()
    fault: str = ""


def read_jsonl(source: Path) -> Iterator[Entry]:
    """The lines of a file of JSON objects, whose names are ours unless they are mapped.

    Raises:
        UsageError: there is no such file.
        InputError: it is no text.
    """
    for number, line in enumerate(_text_of(source).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Entry(number, fault=f"not a JSON object on one line: {error}")
            continue
        if isinstance(raw, dict):
            yield Entry(number, given=raw, found=raw)
        else:
            yield Entry(number, fault=f"expected a JSON object, found {type(raw).__name__}")


def _text_of(source: Path) -> str:
    if not source.is_file():
        raise UsageError(f"no file {source}")
    try:
        return read_text(source)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(source), None, "", f"cannot be read as UTF-8 text: {error}")]) from error
