"""What is kept between processes: modules as they were read, and fingerprints that were asked for.

A file of lines: a mark, the states of all files with the fingerprints, then a line a module, read only where it is
needed. Nothing in it depends on the version of Python or on where the packages are.
"""

import hashlib
import json
import os
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from eval_pipeline.fingerprints.records import Module, from_plain, to_plain

_SETTLED_NS = 100_000_000
"""A file that was changed so little before it was read may be changed again without looking different."""

State = list[int]


def state_of(path: str) -> State | None:
    """What a file looks like from outside; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


@lru_cache(maxsize=1)
def form() -> str:
    """What the file has to have been written by: this very package, since all that is kept follows from it."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return content_digest(b"".join(source.read_bytes() for source in sources))


def content_digest(content: bytes) -> str:
    """The digest of a file's contents, 32 hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class Kept:
    """The contents of a cache file, and what is added to them.

    Attributes:
        files: state and digest of every file, by a name that is the same wherever the packages are.
        lookups: what was looked for among the modules and was not found, or may become more.
        answers: fingerprints by what was asked: the digest, and the names of libraries.
        changed: something was added.
    """

    def __init__(self, path: Path | None) -> None:
        """Reads the file where there is one; one that is damaged or of another form is as none."""
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
        """Keeps the state of a file, unless it was changed so lately that it may be changed again unseen."""
        settled = state[1] + _SETTLED_NS < time.time_ns() and state[2] + _SETTLED_NS < time.time_ns()
        self.files[name] = (state if settled else [], digest)
        self.changed = True

    def add_module(self, name: str, module: Module) -> None:
        """Keeps a module that was read."""
        self._added[name] = module
        self.changed = True

    def module(self, name: str) -> Module | None:
        """A module as it was read before; None where it was not, or what is kept is damaged."""
        if name in self._added or name not in self._lines:
            return self._added.get(name)
        start, length, digest = self._lines[name]
        line = self._body[start : start + length]
        return from_plain(json.loads(line)) if content_digest(line) == digest else None

    def save(self) -> None:
        """Writes the file anew; a failure to do so only costs time later."""
        if self._path is None or not self.changed:
            return
        import tempfile  # most processes have nothing to write

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
            places[name] = (start, len(line), content_digest(line))
            start += len(line) + 1
        head = _json({"files": self.files, "lookups": self.lookups, "answers": self.answers, "lines": places})
        return b"\n".join([_mark(head), head, *lines.values()])


def _mark(head: bytes) -> bytes:
    """The first line of the file: it is of this form and whole, but for modules, which have digests of their own."""
    return f"{form()} {content_digest(head)}".encode()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
