"""Files that somebody else made, read so that none of them can take the process down.

Only regular files are read, none that is larger than it may be; YAML is looked over before it is composed, since the
parser follows depth by recursion in C, and aliases can stand for more than any memory holds.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

MOST_BYTES = 1 << 30
"""Of a file that is read whole."""
MOST_DOCUMENT_BYTES = 64 << 20
"""Of a file with YAML documents, and of a line of JSON: parsed, they take a hundred times that."""
MOST_DEPTH = 100
MOST_VALUES = 2_000_000
"""Values of a YAML file, those that aliases repeat among them."""

SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where it is there."""


class UnreadableFileError(OSError):
    """Why a file is not read, without its name."""


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """What a file holds.

    Raises:
        OSError: it cannot be read, is no regular file (a pipe would be waited for), or is too large.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFileError("is no regular file")
        if status.st_size > most:
            raise UnreadableFileError(f"has {status.st_size:,} bytes; expected at most {most:,}")
        return file.read()


def read_text(path: Path, encoding: str = "utf-8", most: int = MOST_BYTES) -> str:
    """The text of a file, its line ends as Python has them.

    Raises:
        OSError: as of `read_bytes`.
        UnicodeDecodeError: it is no text in that encoding.
    """
    return read_bytes(path, most).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, one after the other: it may be larger than memory.

    Raises:
        OSError: it cannot be read, is no regular file, or has a line that is too long.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UnreadableFileError("is no regular file")
        number = 0
        while line := file.readline(MOST_DOCUMENT_BYTES + 1):
            number += 1
            if len(line) > MOST_DOCUMENT_BYTES:
                raise UnreadableFileError(f"line {number:,} has more than {MOST_DOCUMENT_BYTES:,} bytes")
            yield line


def check_yaml(text: str) -> None:
    """Looks through a YAML text for what would take the process down.

    Raises:
        yaml.YAMLError: it does not parse, is nested too deep, or stands for too many values; with the place.
    """
    sizes: list[int] = [0]  # of what is open, outermost first; the documents are the outermost
    names: list[str | None] = []
    anchors: dict[str, int] = {}
    for event in yaml.parse(text, Loader=SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            names.append(event.anchor)
            sizes.append(1)
            if len(names) > MOST_DEPTH:
                raise _wrong(event, f"is nested more than {MOST_DEPTH} deep")
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            name, size = names.pop(), sizes.pop()
        elif isinstance(event, yaml.ScalarEvent):
            name, size = event.anchor, 1
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in names:
                raise _wrong(event, f"alias '{event.anchor}' stands within what it stands for")
            name, size = None, anchors.get(str(event.anchor), 1)
        else:
            continue
        if name is not None:
            anchors[name] = size
        sizes[-1] += size
        if sum(sizes) > MOST_VALUES:
            raise _wrong(event, f"stands for more than {MOST_VALUES:,} values; a .jsonl file may have any number")


def _wrong(event: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
