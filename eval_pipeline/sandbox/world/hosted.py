"""Databases of PostgreSQL in a world: the programs of this machine, and the files of a server."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from shutil import which

from eval_pipeline.sandbox.inside.postgres import place as hosted_place

__all__ = ["NO_POSTGRES", "Hosted", "hosted_place", "installed_postgres"]

NO_POSTGRES = "install PostgreSQL 14 or newer, with Debian by `apt-get install postgresql`"
_PROGRAMS = ("postgres", "initdb", "pg_dump")
_LEAST = 14
_PLACES = ("/usr/lib/postgresql", "/usr")
"""Below them Debian and others have `<version>/bin` and `pgsql-<version>/bin`; the jail shows nothing outside."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """Databases whose server is run while a call needs it.

    Attributes:
        programs: the folder with its programs.
        folder: the files as `OpenWorld.make` has made them; None to make them.
    """

    programs: str
    folder: Path | None = None


@lru_cache(maxsize=1)
def installed_postgres() -> tuple[str, str] | None:
    """Returns the folder with the programs of the newest server that is installed, and its version."""
    found = []
    for folder in _folders():
        if all(os.access(folder / name, os.X_OK) for name in _PROGRAMS):
            said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False)
            version = re.search(r"(\d+)\.?\S*", said.stdout)
            if version is not None and int(version[1]) >= _LEAST:
                found.append((int(version[1]), str(folder), version[0]))
    return max(found)[1:] if found else None


def _folders() -> Iterator[Path]:
    for top in map(Path, _PLACES):
        yield from (one / "bin" for one in top.glob("*[0-9]*"))
    named = which("initdb")
    place = Path(named).resolve().parent if named else None
    if place is not None and place.is_relative_to("/usr"):
        yield place
