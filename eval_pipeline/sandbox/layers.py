"""Layers: further packages that snippets may import, in a read-only folder that no snippet and no run can change.

A layer is made from a list of wheels with hashes, in the form that `pip` calls requirements. Its folder is named by the
contents of the list, the version of Python and the kind of machine, so that equal lists share one.
"""

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eval_pipeline.core.errors import EvalError, InputError, Problem
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.reading import foreign

_MOST_BYTES = 1 << 20
_HASH = re.compile(r"--hash=sha256:(?P<digest>[0-9a-f]{64})")
_PINNED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+_-]+)(?P<marker> *;[^#]*?)?")
_EXPECTED = "expected a line like `polars==1.35.2 --hash=sha256:…`, of a wheel"
_LAST_LINES = 3


class MissingPackagesError(EvalError):
    """The packages that a suite lists are not installed."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The further packages of a suite.

    Attributes:
        source: the list of packages.
        requirements: its lines, normalised.
        folder: where they are installed.
    """

    source: Path = field(compare=False)
    requirements: tuple[str, ...]
    folder: Path

    def ready(self) -> Path:
        """Returns the folder. Raises a MissingPackagesError that says which command installs the packages."""
        if not self.installed:
            raise MissingPackagesError(
                f"the packages that {self.source.name} lists are not installed; "
                f"`eval-pipeline packages install --suite {self.source.parent.name}` does that"
            )
        return self.folder

    @property
    def installed(self) -> bool:
        """Whether the packages are installed."""
        return self.folder.is_dir()

    def version_of(self, package: str) -> str | None:
        """Returns the version that the list names for a package; None if it does not name the package."""
        found = (re.match(r"([\w-]+)==([^\s;]+)", line) for line in self.requirements)
        return next((one[2] for one in found if one and one[1] == package), None)


def read_layer(source: Path, root: Path) -> Layer:
    """Reads a list of packages.

    Args:
        source: the list: one package per line with its exact version and SHA-256 hashes.
        root: the folder with all layers.

    Raises:
        InputError: names each wrong line.
    """
    try:
        text = foreign.read_text(source, most=_MOST_BYTES)
    except FileNotFoundError as error:
        raise InputError([Problem(str(source), None, "", "there is no such file; `packages` names it")]) from error
    except OSError as error:
        raise InputError([Problem(str(source), None, "", f"cannot be read: {error}")]) from error
    found, problems = [], []
    for number, line in _logical_lines(text):
        try:
            found.append(_requirement(line))
        except ValueError as error:
            problems.append(Problem(str(source), number, "", str(error)))
    if not found and not problems:
        problems.append(Problem(str(source), None, "", f"has no packages; {_EXPECTED}"))
    if problems:
        raise InputError(problems)
    requirements = tuple(sorted(found))
    told = json_text([requirements, sys.implementation.cache_tag, platform.system(), platform.machine()])
    return Layer(source, requirements, root / hashlib.sha256(told.encode()).hexdigest()[:32])


def install(layer: Layer, wheels: Sequence[Path] = ()) -> None:
    """Installs the packages of a layer, if they are not yet; nothing is left behind if that fails.

    Only wheels are installed, since building a package would run its code. Every file must have one of the hashes in
    the list. Dependencies have to be in the list too, except those that the pipeline itself has.

    Args:
        layer: the layer.
        wheels: folders with wheels to use instead of the package index.

    Raises:
        EvalError: pip cannot install them, with its last lines; or there is no pip.
    """
    if layer.installed:
        return
    if importlib.util.find_spec("pip") is None:  # environments made by uv have none
        raise EvalError("installing packages needs pip, which this environment lacks: `python -m ensurepip` adds it")
    layer.folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".installing-", dir=layer.folder.parent))
    try:
        locked = aside / "requirements.txt"
        locked.write_text("\n".join(layer.requirements) + "\n", encoding="utf-8")
        made = aside / "packages"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        command += ["--target", str(made), "--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-compile"]
        command += ["--requirement", str(locked)]
        for folder in wheels:
            command += ["--no-index", "--find-links", str(folder.absolute())]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            lines = [line for line in ran.stderr.strip().splitlines() if line.strip()]
            told = " ".join(lines[-_LAST_LINES:]) or "pip failed"
            raise EvalError(f"the packages of {layer.source} cannot be installed: {told}")
        find_python(made / "bin")
        _make_read_only(made)
        try:
            made.rename(layer.folder)
        except OSError:
            if not layer.installed:  # otherwise another process was faster
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yields lines without comments and with continuations joined, each with the number of its first line."""
    start, parts = 0, list[str]()
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.sub(r"(^|\s)#.*", "", raw).strip()
        start = start if parts else number
        parts.append(line.removesuffix("\\").strip())
        if not line.endswith("\\"):
            if joined := " ".join(part for part in parts if part):
                yield start, joined
            parts = []
    if joined := " ".join(part for part in parts if part):
        yield start, joined


def _requirement(line: str) -> str:
    """Returns a requirement in its normal form. Raises a ValueError that says what is wrong with it."""
    hashes = sorted({f"--hash=sha256:{found['digest']}" for found in _HASH.finditer(line)})
    rest = _HASH.sub("", line).strip()
    pinned = _PINNED.fullmatch(rest)
    if pinned is None:
        raise ValueError(f"{_EXPECTED}; found '{rest[:80]}'")
    if not hashes:
        raise ValueError(f"{pinned['name']} has no hash; {_EXPECTED}")
    name = re.sub(r"[-_.]+", "-", pinned["name"]).lower()
    return " ".join([f"{name}=={pinned['version']}{(pinned['marker'] or '').rstrip()}", *hashes])


def find_python(programs: Path) -> None:
    """Lets the programs of packages look for Python: the one that they name is not in the jail."""
    for path in filter(Path.is_file, programs.glob("*")):
        head, newline, rest = path.read_bytes().partition(b"\n")
        is_long = rest.startswith(b"'''exec' ")  # what pip writes where the place of Python is long or has spaces
        if head.startswith(b"#!") and (b"python" in head or is_long):
            path.write_bytes(b"#!/usr/bin/env python3" + newline + rest)


def _make_read_only(folder: Path) -> None:
    """Takes away the right to write files; folders keep it, so that people can remove a layer."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.chmod(path, stat.S_IMODE(path.stat().st_mode) & ~0o222)
