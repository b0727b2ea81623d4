"""Stable hashes, JSON texts and identifiers: the same in every run."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json


def text_hash(text: str) -> str:
    """Returns the SHA-256 hash of a text, cut to 32 hexadecimal digits."""
    return _digest(text.encode(errors="surrogatepass"))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def canonical_json(value: Any) -> str:
    """Returns JSON with sorted keys and no white space, so that equal values give equal text."""
    return json_text(_ordered(value))


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in value]
    return value


def json_text(value: Any) -> str:
    """Returns JSON with keys in their given order. NaN and infinity become null, lone surrogates become U+FFFD."""
    return _json_bytes(value).decode()


def json_text_hash(value: Any) -> str:
    """Returns the hash of `json_text`; the order of keys matters."""
    return _digest(_json_bytes(value))


def _json_bytes(value: Any) -> bytes:
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        return to_json(without_surrogates(value), inf_nan_mode="null")


def without_surrogates(value: Any) -> Any:
    """Replaces lone surrogates in all texts of a value by U+FFFD. Models write them, but UTF-8 cannot encode them."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value


def has_surrogates(value: Any) -> bool:
    """Whether a text, or one within a list or mapping, has lone surrogates."""
    return bool(without_surrogates(value) != (list(value) if isinstance(value, tuple) else value))


def parse_json(text: str) -> Any:
    """Parses a JSON text written by `json_text` or `canonical_json`."""
    return from_json(text)


def json_hash(value: Any) -> str:
    """Returns the SHA-256 hash of a JSON value, cut to 32 hexadecimal digits; the order of keys does not matter."""
    return text_hash(canonical_json(value))


def files_hash(files: Iterable[tuple[str, Path]]) -> str:
    """Returns the SHA-256 hash over the names and contents of files, sorted by name, cut to 32 hexadecimal digits."""
    digest = hashlib.sha256()
    for name, path in sorted(files):
        digest.update(f"{name}\0{file_hash(path)}\0".encode())
    return digest.hexdigest()[:32]


def file_hash(path: Path) -> str:
    """Returns the SHA-256 hash of a file's contents, cut to 32 hexadecimal digits.

    The result is cached until the file's size or modification time changes.
    """
    status = path.stat()
    return _file_hash(path, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4096)
def _file_hash(path: Path, inode: int, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def turn_id(suite: str, case_id: str, index: int) -> str:
    """Returns the public id of a turn: `<suite>/<case>#<index>`."""
    return f"{suite}/{case_id}#{index}"


def trace_id(turn: str, model_version: str) -> str:
    """Returns the public id of one model version's work on one turn: `<turn>@<model version>`."""
    return f"{turn}@{model_version}"
