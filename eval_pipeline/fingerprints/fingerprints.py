"""Computes fingerprints of the code of stages, metrics, aggregates and reports."""

import ast
import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from eval_pipeline.core.errors import EvalError
from eval_pipeline.fingerprints.cache import SAME, Kept, content_digest, state_of
from eval_pipeline.fingerprints.libraries import DECISIVE, versions
from eval_pipeline.fingerprints.parsed.records import Module
from eval_pipeline.fingerprints.parsed.trees import digest, imported_from, text_digest
from eval_pipeline.fingerprints.places import Root, places
from eval_pipeline.fingerprints.sources import OWN, Sources

if TYPE_CHECKING:
    from eval_pipeline.fingerprints.reaching import Node, Reacher
    from eval_pipeline.fingerprints.resolving import Resolver


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Everything in addition to the input that can change a result.

    Attributes:
        code: digest of all our source and data files that are reached, 16 hexadecimal digits.
        libraries: distribution → version of the libraries that are used and can change results.
    """

    code: str
    libraries: Mapping[str, str]


class FingerprintError(EvalError):
    """A root, a module or a data file cannot be found or read; the message names it."""


class Fingerprints:
    """Computes fingerprints; thread-safe. Files are assumed not to change during the life of the process."""

    def __init__(
        self, cache: Path | None = None, *, roots: Mapping[str, Path] | None = None, stops: Collection[str] = ()
    ) -> None:
        """Creates the object without reading anything yet.

        Args:
            cache: file for storing what was read; it need not exist.
            roots: top-level package → folder to read instead of the one that would be imported.
            stops: places whose own code is part of the fingerprint but whose references are not followed, e.g. a
                registry; the entries in use are then given as roots. A module or package (without `:`) is left out
                completely unless a root is in it; this suits code that only passes values along.
        """
        self._cache, self._stops = cache, tuple(sorted(stops))
        self._sources = Sources(roots)
        self._lock = RLock()
        self._loaded: Kept | None = None
        self._modules: dict[str, Module | None] = {}
        self._listed: set[str] = set()
        self._data: dict[str, str | None] = {}
        self._reachers: dict[frozenset[str], tuple[Resolver, Reacher]] = {}
        self._answers: dict[str, Fingerprint] = {}

    def of(self, *roots: Root) -> Fingerprint:
        """Returns the joint fingerprint of functions, classes and places; their order does not matter.

        Raises:
            FingerprintError: there is nothing at a place, or a module that is reached cannot be read.
        """
        asked = _asked(roots)
        key = "\n".join([*asked, *(f"!{stop}" for stop in self._stops)])
        with self._lock:
            if key not in self._answers:
                kept = self._kept()
                if key not in kept.answers:
                    reacher, nodes, outside = self._started(asked)
                    libraries = reacher.reached(nodes)[1] | {_top(place) for place in outside}
                    handed_over = [place for place in asked if place.startswith("=")]
                    lines = [*handed_over, *outside, reacher.digest(nodes)]
                    kept.answers[key] = (text_digest("\n".join(lines)), sorted(libraries & DECISIVE.keys()))
                    kept.changed = True
                code, names = kept.answers[key]
                self._answers[key] = Fingerprint(code, versions(names))
            return self._answers[key]

    def reached(self, *roots: Root) -> Mapping[str, str]:
        """Returns the digest of each definition and data file that the roots reach, by place.

        Raises FingerprintError.
        """
        with self._lock:
            reacher, nodes, outside = self._started(_asked(roots))
            return dict(sorted((reacher.reached(nodes)[0] | dict.fromkeys(outside, "")).items()))

    def save(self) -> None:
        """Writes the cache if anything was added; errors are ignored."""
        with self._lock:
            if self._loaded is not None and self._loaded.changed:
                missing = [name for name, file in self._sources.known().items() if file is None]
                for name in (*missing, *(f"{package}.*" for package in self._sources.listed), *self._listed):
                    self._loaded.lookups[name] = self._looked_up(name)
                self._loaded.save()

    def _started(self, asked: Collection[str]) -> "tuple[Reacher, list[Node], list[str]]":
        """Returns what follows references, the definitions to begin with, and the places outside of our packages."""
        # What follows references is imported here, as all that most processes ask is in the cache.
        from eval_pipeline.fingerprints.reaching import Reacher
        from eval_pipeline.fingerprints.resolving import Resolver

        # Packages that are libraries are not ours, even if one of their functions is a root.
        ours = (OWN | {_top(place) for place in asked if not place.startswith("=")}) - (
            frozenset(sys.stdlib_module_names) | DECISIVE.keys()
        )
        if ours not in self._reachers:
            resolver = Resolver(self._sources, self._module, ours)
            self._reachers[ours] = resolver, Reacher(resolver, self._data_digest, self._stops, _same())
        resolver, reacher = self._reachers[ours]
        nodes: list[Node] = []
        outside: list[str] = []
        for place in asked:
            if resolver.is_ours(place.lstrip("~").partition(":")[0]):
                nodes += self._nodes(resolver, place)
            elif not place.startswith("="):
                outside.append(place.lstrip("~"))
        return reacher, nodes, outside

    def _nodes(self, resolver: "Resolver", place: str) -> "list[Node]":
        """Returns the definitions at a place."""
        from eval_pipeline.fingerprints.reaching import ALL, Node, place_nodes

        module, _, name = place.lstrip("~").partition(":")
        read = self._module(module)
        if read is None:
            raise FingerprintError(f"there is no source of the module '{module}', which '{place.lstrip('~')}' names")
        if not name:
            return [Node(module, ALL)]
        if nodes := place_nodes(resolver, module, name):
            return nodes
        if place.startswith("~"):  # created dynamically: use its class, or else the module that created it
            return place_nodes(resolver, module, name.partition(".")[0]) or [Node(module, ALL)]
        if read.stars or "__getattr__" in read.definitions:
            return [Node(module, ALL)]
        raise FingerprintError(f"there is no '{name}' in the module '{module}'")

    def _kept(self) -> Kept:
        """Returns the cache without entries for files that have changed."""
        if self._loaded is None:
            self._loaded = Kept(self._cache)
            if not self._holds(self._loaded):
                self._loaded.answers.clear()
                self._loaded.lookups.clear()  # they belong to those answers
                self._loaded.changed = True
        return self._loaded

    def _holds(self, kept: Kept) -> bool:
        """Whether every file and every lookup is unchanged."""
        changed = [name for name in list(kept.files) if not self._unchanged(kept, name)]
        return not changed and all(self._looked_up(name) == found for name, found in kept.lookups.items())

    def _looked_up(self, name: str) -> str:
        """Returns what exists now under a name.

        The name stands for files in a data folder (`module:folder/`), modules of a package (`….*`), or a module.
        """
        if name.endswith("/"):
            return "\n".join(self._files_in(*name[:-1].split(":")))
        if name.endswith(".*"):
            return " ".join(self._sources.submodules(name[:-2]))
        if self._sources.file(name) is not None:
            return "module"
        return "folder" if self._sources.exists(name) else ""

    def _unchanged(self, kept: Kept, name: str) -> bool:
        """Whether a file is unchanged; if its state differs, its contents decide."""
        state, digest = kept.files[name]
        path = self._path(name)
        now = state_of(path) if path else None
        if now is not None and now == state:
            return True
        if path is not None and now is not None and _content(path)[1] == digest:
            kept.add_file(name, now, digest)
            return True
        del kept.files[name]
        return False

    def _path(self, name: str) -> str | None:
        """Returns the file for a name in the cache: a module, or `module:path` for a data file."""
        module, colon, inner = name.partition(":")
        file = self._sources.file(module)
        return os.path.join(os.path.dirname(file), inner) if file and colon else file

    def _module(self, name: str) -> Module | None:
        """Returns a parsed module, read now or earlier."""
        if name not in self._modules:
            path = self._sources.file(name)
            self._modules[name] = self._read(name, path) if path else None
        return self._modules[name]

    def _read(self, name: str, path: str) -> Module:
        kept = self._kept()
        if name in kept.files and (module := kept.module(name)) is not None:
            return module
        from eval_pipeline.fingerprints.parsed.reading import (
            read_module,  # imported here as most processes do not need it
        )

        state = state_of(path)
        try:
            content, digest = _content(path)
            module = read_module(content, name, is_package=os.path.basename(path) == "__init__.py")
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            raise FingerprintError(f"{path} cannot be read: {error}") from error
        kept.add_file(name, state or [], digest)
        kept.add_module(name, module)
        return module

    def _data_digest(self, name: str, module: Module) -> str | None:
        """Returns the digest of the data files that a module declares; None if it declares none."""
        if name not in self._data:
            digests = [f"{inner} {self._data_content(name, inner)}" for inner in self._data_names(name, module)]
            self._data[name] = text_digest("\n".join(digests)) if module.data_files else None
        return self._data[name]

    def _data_content(self, name: str, inner: str) -> str:
        """Returns the content of a data file that matters; of a Python file, the code without comments and layout."""
        kept, key = self._kept(), f"{name}:{inner}"
        if key not in kept.files:
            path = self._path(key)
            assert path is not None
            state = state_of(path)
            try:
                kept.add_file(key, state or [], _content(path)[1])
            except OSError as error:
                raise FingerprintError(f"DATA_FILES of {name} names '{inner}': {error}") from error
        content = kept.files[key][1]
        if not inner.endswith(".py"):
            return content
        with open(self._path(f"{name}:{inner}") or "", "rb") as file:
            tree = ast.parse(file.read())
        return " ".join([digest([tree]), *(module for module, _ in imported_from([tree]))])

    def _data_names(self, name: str, module: Module) -> Iterator[str]:
        """Yields the files that a module declares, with folders expanded."""
        for inner in module.data_files:
            path = self._path(f"{name}:{inner}")
            if path is None or not os.path.isdir(path):
                yield inner
                continue
            self._listed.add(f"{name}:{inner}/")
            yield from self._files_in(name, inner)

    def _files_in(self, name: str, inner: str) -> list[str]:
        """Returns the files in a folder beside a module, as relative paths."""
        start = os.path.dirname(self._path(name) or "")
        found = [
            os.path.relpath(os.path.join(folder, file), start)
            for folder, _, files in os.walk(os.path.join(start, inner))
            for file in files
            if not folder.endswith("__pycache__")
        ]
        return sorted(found)


def _asked(roots: Iterable[Root]) -> list[str]:
    return sorted({place for root in roots for place in places(root)})


def _top(place: str) -> str:
    return place.lstrip("~").partition(":")[0].partition(".")[0]


def _same() -> dict[str, str]:
    """Returns digests of code that is known to compute the same as code before it (`eval_pipeline_tests.same_code`)."""
    found: dict[str, str] = json.loads(SAME.read_bytes())
    return found


def _content(path: str) -> tuple[bytes, str]:
    with open(path, "rb") as file:
        content = file.read()
    # relative imports have different meanings in a package's and a module's file
    return content, content_digest(content + (b"package" if path.endswith("__init__.py") else b""))
