"""Reads files of recorded answers into entries."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.foreign import parsed_json, read_text
from eval_pipeline.core.model import Json


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
    """

    line: int | None
    place: str = ""
    given: Mapping[str, Json] = field(default_factory=dict)
    found: Mapping[str, Json] = field(default_factory=dict)
    conversation: tuple[str, ...] = ()
    fault: str = ""


def read_jsonl(source: Path) -> Iterator[Entry]:
    """Yields the lines of a JSON Lines file, whose field names are ours unless mapped.

    Raises:
        UsageError: there is no such file.
        InputError: the file is not text.
    """
    for number, line in enumerate(_text_of(source).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            raw = parsed_json(line)
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
