"""Reads the entries of a file, which cases, predictions and imported data sets are, with their lines, in any format."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.reading.complaints import dotted
from eval_pipeline.core.reading.foreign import (
    MOST_DOCUMENT_BYTES,
    SafeLoader,
    check_yaml,
    lines_of,
    read_text,
    undecodable,
    why_unread,
)
from eval_pipeline.core.reading.json_reading import JsonError, NotJsonError, json_items, json_line
from eval_pipeline.core.reading.users_tables import TABLE_FORMATS, Unreadable, UsersTable, open_users_table

FORMATS = ".jsonl, .json, .yaml, .csv, .tsv, .xlsx or .parquet"
"""Formats of files with entries, for messages; `.ndjson`, `.jsonl.gz`, `.yml`, `.xlsm` and `.pq` are read as well."""
_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
Location = Sequence[int | str]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One entry of a file.

    Attributes:
        raw: its content; of a row in a table, its cells by column, without the empty ones.
        line: where it begins, from 1; in an Excel sheet its row, in a Parquet file its number among the rows.
        columns: of the table, if the entry is a row of one.
    """

    raw: Any
    file: str
    line: int
    columns: tuple[str, ...] = ()
    _line_within: Callable[[Location], int] | None = None

    def line_of(self, location: Location) -> int:
        """Returns the line of a field, or of its closest existing parent; the entry's line if that is all we know."""
        return self.line if self._line_within is None else self._line_within(location)


def read_entries(
    path: Path,
    name: str,
    wanted: Collection[str] = (),
    say: Callable[[str], None] = lambda sentence: None,
    *,
    else_lines: bool = False,
) -> Iterator[FileEntry | Problem]:
    """Yields the entries of a file, and problems in place of entries that are wrong.

    Args:
        path: the file.
        name: its name in problems.
        wanted: columns that a table is expected to have, if known.
        say: gets a sentence on how a table was read, which is not told by its content alone.
        else_lines: whether a file with another ending has an object on each line.
    """
    suffix = path.suffix.lower()
    try:
        # All of a document, or nothing.
        if suffix == ".json":
            yield from list(_json_entries(read_text(path), name))
        elif suffix in {".yaml", ".yml"}:
            yield from list(yaml_entries(read_text(path, most=MOST_DOCUMENT_BYTES), name))
        elif suffix in TABLE_FORMATS:
            yield from _rows(open_users_table(path, name, wanted), name, say)
        elif else_lines or path.name.lower().endswith(_LINES):
            yield from _jsonl_entries(lines_of(path), name)
        else:
            yield Problem(name, None, "", f"cannot read '{suffix}' files; expected {FORMATS}")
    except InputError as error:
        yield from error.problems
    except OSError as error:
        yield Problem(name, None, "", f"cannot be read as UTF-8 text: {why_unread(error)}")


def _rows(table: UsersTable, name: str, say: Callable[[str], None]) -> Iterator[FileEntry | Problem]:
    say(f"{name}: read as {table.told}")
    for line, cells in table.rows:
        if isinstance(cells, Unreadable):
            yield Problem(name, line, "", cells.why)
        else:
            yield FileEntry(cells, name, line, table.columns)


def _jsonl_entries(lines: Iterable[bytes], name: str) -> Iterator[FileEntry | Problem]:
    for number, line in enumerate(lines, start=1):
        try:
            yield from (FileEntry(item.value, name, number) for item in json_items(line.decode(), listed=False))
        except UnicodeDecodeError as error:
            yield Problem(name, number, "", f"cannot be read as UTF-8 text: {undecodable(error)}")
        except JsonError as error:
            what = "not a JSON object on one line: " if isinstance(error, NotJsonError) else ""
            yield Problem(name, number, "", f"{what}{error}")


def _json_entries(text: str, name: str) -> Iterator[FileEntry]:
    try:
        for item in json_items(text):
            yield FileEntry(item.value, name, item.line, _line_within=partial(json_line, text, item))
    except JsonError as error:
        what = "is not JSON: " if isinstance(error, NotJsonError) else ""
        raise InputError([Problem(name, error.line, "", f"{what}{error}")]) from error


def yaml_entries(text: str, name: str) -> Iterator[FileEntry]:
    """Yields the documents of a YAML text; lists among them are expanded. Raises InputError if it does not parse."""
    loader = None
    try:
        check_yaml(text)
        loader = SafeLoader(text)
        while loader.check_node():
            node: Any = loader.get_node()
            value = loader.construct_document(node)
            items = zip(value, node.value, strict=True) if isinstance(value, list) else [(value, node)]
            for raw, item in items:
                line = item.start_mark.line + 1
                yield FileEntry(raw, name, line, _line_within=partial(_yaml_line, item, line))
    except Exception as error:  # YAML constructors may raise anything
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or str(error)
        raise InputError([Problem(name, mark.line + 1 if mark else None, "", f"does not parse: {message}")]) from error
    finally:
        if loader is not None:
            loader.dispose()


def only_entry(path: Path, expected: str = "name, version, track and cases") -> FileEntry:
    """Returns the single entry of a YAML file. Raises InputError if there is not exactly one."""
    entries = list(yaml_entries(read_text(path, most=MOST_DOCUMENT_BYTES), str(path)))
    if len(entries) != 1:
        raise InputError([Problem(str(path), 1, "", f"expected one mapping with {expected}")])
    return entries[0]


def problem_at(entry: FileEntry, location: Location, message: str) -> Problem:
    """Returns a problem with a field of an entry, with its line."""
    return Problem(entry.file, entry.line_of(location), dotted(location), message)


def _yaml_line(node: Any, line: int, location: Location) -> int:
    for part in location:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            pair = (node.value[part], node.value[part])
        else:
            pair = None
        if pair is None:
            break
        line, node = pair[0].start_mark.line + 1, pair[1]
    return line
