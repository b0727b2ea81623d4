"""Reads the entries of a suite's files together with their line numbers, in any format."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic_core import from_json

from eval_pipeline.core.complaints import dotted
from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.foreign import (
    MOST_DOCUMENT_BYTES,
    RepeatedKeyError,
    SafeLoader,
    check_yaml,
    lines_of,
    read_text,
    refuse_repeated_keys,
)
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Json


@dataclass(frozen=True, slots=True)
class Entry:
    """One case as read from a file, with its YAML node if the format has line numbers for fields."""

    raw: Any
    file: str
    line: int
    node: yaml.Node | None = None


def read_entries(path: Path, name: str) -> Iterator[Entry | Problem]:
    """Yields the entries of a file, and problems in place of entries that are wrong."""
    try:
        if path.suffix == ".jsonl":
            yield from _jsonl_entries(lines_of(path), name)
        elif path.suffix in {".yaml", ".yml", ".json"}:
            # JSON is read as YAML to get line numbers. From an incomplete file, nothing is taken.
            yield from list(yaml_entries(read_text(path, most=MOST_DOCUMENT_BYTES), name))
        else:
            expected = "expected .jsonl, .json, .yaml or .yml"
            yield Problem(name, None, "", f"cannot read cases from '{path.suffix}' files; {expected}")
    except InputError as error:
        yield from error.problems
    except (OSError, UnicodeDecodeError) as error:
        yield Problem(name, None, "", f"cannot be read as UTF-8 text: {error}")


def _jsonl_entries(lines: Iterable[bytes], name: str) -> Iterator[Entry | Problem]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = _decoded(line)
            refuse_repeated_keys(line.decode())
            yield Entry(found, name, number)
        except RepeatedKeyError as error:
            yield Problem(name, number, "", str(error))
        except UnicodeDecodeError as error:
            yield Problem(name, number, "", f"cannot be read as UTF-8 text: {error}")
        except (ValueError, RecursionError) as error:
            yield Problem(name, number, "", f"not a JSON object on one line: {error}")


def _decoded(line: bytes) -> Json:
    """Parses a line with pydantic-core, which takes half the time of `json`; what it rejects is parsed by `json`."""
    try:
        return from_json(line)
    except ValueError:
        found = json.loads(line.decode())
        json_text(found)  # fails for values nested too deeply for all later code
        return found


def yaml_entries(text: str, name: str) -> Iterator[Entry]:
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
                yield Entry(raw, name, item.start_mark.line + 1, item)
    except Exception as error:  # YAML constructors may raise anything
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or str(error)
        line = mark.line + 1 if mark else None
        raise InputError([Problem(name, line, "", f"does not parse: {message}")]) from error
    finally:
        if loader is not None:
            loader.dispose()


def problem_at(entry: Entry, location: Sequence[int | str], message: str) -> Problem:
    """Returns a problem with a field of an entry, with its line."""
    return Problem(entry.file, line_of(entry, location), dotted(location), message)


def line_of(entry: Entry, location: Sequence[int | str]) -> int:
    """Returns the line of a field in a YAML entry, or of its closest existing parent."""
    node, line = entry.node, entry.line
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
