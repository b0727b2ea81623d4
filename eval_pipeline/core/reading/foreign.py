"""Reads files made by others in a way that none of them can crash or exhaust the process.

Only regular files up to a size limit are read. YAML is checked before it is loaded, because the C parser recurses once
per nesting level, aliases can expand to more values than fit into memory, and numbers take the square of their length.
"""

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import yaml

MOST_BYTES = 1 << 30
"""Size limit of a file that is read whole."""
MOST_DOCUMENT_BYTES = 64 << 20
"""Size limit of a YAML file and of a line of JSON; once parsed, they take about a hundred times as much memory."""
MOST_DEPTH = 100
MOST_VALUES = 2_000_000
"""Limit on the number of values in a YAML file, counting those that aliases repeat."""
MOST_OF_NUMBER = 3_000
"""Limit on the characters of a number in YAML, where it may be in base 2, 8, 16 or 60 (`1:59:59`).

What it stands for has then at most the 4,300 digits that Python reads and writes, to which JSON is held.
"""

_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp")
_BOM = b"\xef\xbb\xbf"
"""Byte order mark before UTF-8, which Excel and PowerShell write."""
_OTHERS = {
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x1f\x8b": "a gzip file",
    b"PK\x03\x04": "a zip file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PAR1": "a Parquet file",
    b"SQLite format 3\0": "an SQLite database",
}
"""How files begin that are given where text is expected."""
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class SafeLoader(_Loader):  # type: ignore[misc]  # of either kind
    """The loader of libyaml where available, else the one in Python."""

    def construct_yaml_timestamp(self, node: Any) -> Any:
        """Returns a date or time. Raises a YAMLError with the line if there is no such day or hour."""
        try:
            return super().construct_yaml_timestamp(node)
        except ValueError as error:
            raise yaml.constructor.ConstructorError(None, None, f"'{node.value}': {error}", node.start_mark) from None


SafeLoader.add_constructor("tag:yaml.org,2002:timestamp", SafeLoader.construct_yaml_timestamp)


class UnreadableFileError(OSError):
    """Says why a file is not read; the message does not include its name."""


class NotUtf8Error(UnreadableFileError):
    """A file that should be text is not in UTF-8."""


def why_unread(error: OSError) -> str:
    """Returns why a file could not be read, in words without its name: `Permission denied`."""
    return error.strerror or str(error)


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Returns the contents of a file.

    Raises:
        OSError: the file cannot be read, is too large, or is not a regular file (reading a pipe could block).
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFileError("is no regular file")
        if status.st_size > most:
            raise UnreadableFileError(f"has {status.st_size:,} bytes; expected at most {most:,}")
        return file.read()


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    r"""Returns the text of a file, without a byte order mark and with line ends normalised to `\n`.

    Raises:
        OSError: as for `read_bytes`, or the file is of a known other kind, or not in UTF-8.
    """
    content = read_bytes(path, most)
    refuse_others(content)
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotUtf8Error(f"line {line:,} {undecodable(error)}") from None


def undecodable(error: UnicodeDecodeError) -> str:
    """Returns what is wrong with bytes that are not UTF-8, and what they are in the encoding of Windows."""
    byte = error.object[error.start : error.start + 1]
    try:
        likely = f", which is '{byte.decode('cp1252')}' in Windows-1252"
    except UnicodeDecodeError:
        likely = ""
    return f"has the byte 0x{byte.hex().upper()}{likely}; save it as UTF-8"


def refuse_others(content: bytes) -> None:
    """Raises an OSError for what begins like a file of another kind than text in UTF-8."""
    kind = next((kind for begins, kind in _OTHERS.items() if content.startswith(begins)), None)
    if kind is not None:
        raise UnreadableFileError(f"is {kind}; expected text in UTF-8")


def lines_of(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file one by one, so that it may be larger than memory; one named `.gz` is unpacked.

    A byte order mark before the first is left out.

    Raises:
        OSError: the file cannot be read, is not a regular file, is of a known other kind, has a line that is too long,
            or unpacks to more than `MOST_BYTES`.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UnreadableFileError("is no regular file")
        if path.suffix != ".gz":
            yield from _lines(file)
            return
        try:
            with gzip.open(file) as unpacked:
                unpacked_bytes = 0
                for line in _lines(unpacked):
                    unpacked_bytes += len(line)
                    if unpacked_bytes > MOST_BYTES:
                        raise UnreadableFileError(f"unpacks to more than {MOST_BYTES:,} bytes")
                    yield line
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UnreadableFileError(f"is not a sound gzip file: {error}") from error


def _lines(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    number = 0
    while line := file.readline(MOST_DOCUMENT_BYTES + 1):
        number += 1
        if len(line) > MOST_DOCUMENT_BYTES:
            raise UnreadableFileError(f"line {number:,} has more than {MOST_DOCUMENT_BYTES:,} bytes")
        if number == 1:
            refuse_others(line)
            line = line.removeprefix(_BOM)
        yield line


def check_yaml(text: str) -> None:
    """Checks that loading a YAML text cannot exhaust the process, and loses nothing of it.

    Raises:
        yaml.YAMLError: the text does not parse, is nested too deeply, expands to too many values, has a number that is
            too long to be one, or a mapping with the same key twice, of which only the last would be loaded; names the
            place.
    """
    sizes: list[int] = [0]  # values seen in each open collection, outermost (the stream) first
    names: list[str | None] = []
    anchors: dict[str, int] = {}
    keys = _Keys()
    for event in yaml.parse(text, Loader=SafeLoader):
        keys.see(event)
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
            _check_length(event)
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


def _check_length(event: Any) -> None:
    """Raises a YAMLError for a number that is too long to be one."""
    if len(event.value) <= MOST_OF_NUMBER:
        return
    plain, _ = event.implicit
    if (_RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False)) if plain else event.tag) in _NUMBERS:
        most = f"{MOST_OF_NUMBER:,}, or a text in quotes"
        raise _wrong(event, f"has a number of {len(event.value):,} characters; expected at most {most}")


_RESOLVER: Any = yaml.resolver.Resolver()


class _Keys:
    """The keys of the mappings that are open at an event, outermost first."""

    def __init__(self) -> None:
        self._open: list[dict[str, int] | None] = []  # key → its line; None for a sequence
        self._is_key: list[bool] = []  # whether the next node of each is a key

    def see(self, event: Any) -> None:
        """Takes the next event. Raises a YAMLError for a key that its mapping has already."""
        if isinstance(event, yaml.ScalarEvent):
            self._see_key(event)
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append({} if isinstance(event, yaml.MappingStartEvent) else None)
            self._is_key.append(True)
            return
        if isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._is_key.pop()
        if self._is_key and isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            self._is_key[-1] = not self._is_key[-1]

    def _see_key(self, event: Any) -> None:
        known = self._open[-1] if self._open else None
        if known is None or not self._is_key[-1] or event.value == "<<":
            return
        if event.value in known:
            raise _wrong(event, f"the key '{event.value[:60]}' is given twice, first in line {known[event.value]}")
        known[event.value] = event.start_mark.line + 1


def _wrong(event: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
