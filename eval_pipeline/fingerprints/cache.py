"""Cache file of parsed modules and computed fingerprints, shared between processes.

The file consists of lines: a mark, the states of all files with the fingerprints, then one line per module, which is
parsed only when needed. The contents do not depend on the version of Python or on the location of the packages.
"""

import hashlib
import json
import os
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from eval_pipeline.fingerprints.parsed.records import Module, from_plain, to_plain

SAME = Path(__file__).with_name("same.json")
"""Digests of roots that compute the same as code before them: digest now → digest before."""
_SETTLED_NS = 100_000_000
"""A file modified less than this before it was read could be modified again without a visible change of its state."""

State = list[int]


def state_of(path: str) -> State | None:
    """Returns a file's size, times and inode; None if the file does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


@lru_cache(maxsize=1)
def form() -> str:
    """Returns a hash of this package's source, which identifies the form of the cache file."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return content_digest(b"".join(source.read_bytes() for source in (*sources, SAME)))


def content_digest(content: bytes) -> str:
    """Returns the digest of a file's contents, 32 hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class Kept:
    """The contents of a cache file, and what is added to them.

    Attributes:
        files: state and digest of every file, by a name that does not depend on where the packages are.
        lookups: results of searches that found no file, or that may find more files later.
        answers: fingerprints by request: the digest, and the names of libraries.
        changed: whether something was added.
    """

    def __init__(self, path: Path | None) -> None:
        """Reads the file, if any; a damaged file or one of another form counts as empty."""
        self._path = path
        self._read(b"")
        if path is not None:
            try:
                self._read(path.read_bytes())
            except (OSError, ValueError):
                self._read(b"")

    def _read(self, content: bytes) -> None:
        mark, _, rest = content.partition(b"\n")
        first, _, self._body = rest.partition(b"\n")
        if content and mark != _mark(first):
            raise ValueError("damaged, or of another form")
        head: dict[str, Any] = json.loads(first) if content else {}
        self.files: dict[str, tuple[State, str]] = {
            name: (state, digest) for name, (state, digest) in head.get("files", {}).items()
        }
        self.lookups: dict[str, str] = head.get("lookups", {})
        self.answers: dict[str, tuple[str, list[str]]] = {
            asked: (code, names) for asked, (code, names) in head.get("answers", {}).items()
        }
        self._lines: dict[str, tuple[int, int, str]] = {
            name: tuple(line) for name, line in head.get("lines", {}).items()
        }
        self._added: dict[str, Module] = {}
        self.changed = False

    def add_file(self, name: str, state: State, digest: str) -> None:
        """Stores the state of a file, unless it was modified so recently that another change could go unnoticed."""
        settled = state[1] + _SETTLED_NS < time.time_ns() and state[2] + _SETTLED_NS < time.time_ns()
        self.files[name] = (state if settled else [], digest)
        self.changed = True

    def add_module(self, name: str, module: Module) -> None:
        """Stores a parsed module."""
        self._added[name] = module
        self.changed = True

    def module(self, name: str) -> Module | None:
        """Returns a parsed module; None if it is not in the cache or its entry is damaged."""
        if name in self._added or name not in self._lines:
            return self._added.get(name)
        start, length, digest = self._lines[name]
        line = self._body[start : start + length]
        return from_plain(json.loads(line)) if content_digest(line) == digest else None

    def save(self) -> None:
        """Writes the file; errors are ignored, as they only cost time later."""
        if self._path is None or not self.changed:
            return
        import tempfile  # imported here because most processes have nothing to write

        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, aside = tempfile.mkstemp(dir=self._path.parent, prefix=".fingerprints-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(self._content())
                os.replace(aside, self._path)
                self.changed = False
            except OSError:
                os.unlink(aside)

    def _content(self) -> bytes:
        kept = {name: place for name, place in self._lines.items() if name in self.files}
        lines = {name: self._body[start : start + length] for name, (start, length, _) in kept.items()}
        lines |= {name: _json(to_plain(module)) for name, module in self._added.items()}
        places, start = {}, 0
        for name, line in lines.items():
            is_new = name in self._added
            digest = content_digest(line) if is_new else kept[name][2]  # a damaged line never gets a digest that fits
            places[name] = (start, len(line), digest)
            start += len(line) + 1
        head = _json({"files": self.files, "lookups": self.lookups, "answers": self.answers, "lines": places})
        return b"\n".join([_mark(head), head, *lines.values()])


def _mark(head: bytes) -> bytes:
    """Returns the first line of the file, with a digest of the second; modules have digests of their own."""
    return f"{form()} {content_digest(head)}".encode()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
