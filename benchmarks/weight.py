"""What an installation weighs.

Counted are the packages that requirements bring into this environment, this project among them, and what their files
take on the disk, compiled ones among them. No network is used: `make setup` has installed the versions of `uv.lock`.
"""

import os
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "eval-pipeline"
PACKAGES, MEGABYTES = 100, 900
"""The most that a plain installation may be."""
_SHIPPED = [Path(__file__).parents[1] / name for name in ("eval_pipeline", "eval_pipeline_plugins", "data")]
_BLOCK = 512  # of `st_blocks`, whatever the file system's blocks are


def weights() -> dict[str, float]:
    """The megabytes of each package of a plain installation, heaviest first."""
    found = {name: _megabytes(name) for name in _required(PROJECT)}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _required(package: str) -> set[str]:
    """The package and all that it requires here, without its extras."""
    found: set[tuple[str, str]] = set()
    waiting = [(canonicalize_name(package), "")]
    while waiting:
        if (place := waiting.pop()) not in found:
            found.add(place)
            waiting += _next(*place)
    return {name for name, _ in found}


def _next(package: str, extra: str) -> list[tuple[str, str]]:
    needed = map(Requirement, distribution(package).requires or ())
    return [
        (canonicalize_name(one.name), further)
        for one in needed
        if one.marker is None or one.marker.evaluate({"extra": extra})
        for further in ("", *one.extras)
    ]


def _megabytes(package: str) -> float:
    files = _shipped() if package == PROJECT else _installed(distribution(package))
    return sum(map(_blocks, files)) * _BLOCK / 1e6


def _blocks(file: str) -> int:
    try:
        return os.stat(file).st_blocks
    except OSError:  # not compiled
        return 0


def _shipped() -> Iterator[str]:
    return (str(path) for folder in _SHIPPED for path in folder.rglob("*"))


def _installed(found: Distribution) -> Iterator[str]:
    folder = str(found.locate_file(""))
    for line in (found.read_text("RECORD") or "").splitlines():
        file = os.path.join(folder, line.rsplit(",", 2)[0])
        if file.endswith(".py"):
            yield cache_from_source(file)
        if not file.endswith(".pyc"):
            yield file
