"""The worlds of a suite: folders below `worlds/`, each with a `world.yaml`, files, and what makes more of them."""

import os
import shutil
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, Field, ValidationError

from eval_pipeline.core.errors import EvalError, InputError, Problem
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import file_hash, json_hash
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.core.reading.foreign import check_yaml, read_text, why_unread
from eval_pipeline.core.values import value
from eval_pipeline.store.durable import locked
from eval_pipeline.tracks.agent.cases.settings import STRICT

FOLDER, TOLD, FILES, BUILD = "worlds", "world.yaml", "files", "build.py"
_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
_BUILD_S = 120.0


class WorldDatabase(BaseModel):
    """A database of a world.

    Attributes:
        file: its file in the world.
        read_only: whether the tool `sql` only reads it.
    """

    model_config = STRICT

    file: Annotated[str, Field(min_length=1)]
    read_only: bool = False


class _WorldFile(BaseModel):
    model_config = STRICT

    description: str = ""
    databases: dict[Annotated[str, Field(pattern=_NAME)], WorldDatabase] = Field(default_factory=dict)


@value
class WorldOfSuite:
    """A world.

    Attributes:
        name: its folder's.
        description: a sentence that models are shown.
        databases: by name.
        hash: of everything that makes it.
        source: its folder in the suite.
    """

    name: str
    description: str
    databases: Mapping[str, WorldDatabase]
    hash: str
    source: Path

    @property
    def files(self) -> dict[str, tuple[str, bool]]:
        """The databases as `Worlds.open` takes them."""
        return {name: (one.file, one.read_only) for name, one in self.databases.items()}

    def listing(self) -> frozenset[str]:
        """Returns the paths of the files in it."""
        folder = self.folder()
        return _listing(folder, self.hash)

    def told(self) -> Json:
        """Returns all of it that does not depend on where it is."""
        found: dict[str, Json] = {name: one.model_dump(mode="json") for name, one in self.databases.items()}
        return {"name": self.name, "description": self.description, "databases": found, "hash": self.hash}

    def folder(self) -> Path:
        """Returns the folder that is shown to agents; where there is a `build.py` it is run once for each home.

        Raises:
            EvalError: `build.py` fails.
            NoSandboxError: this machine has no jail to run it in.
        """
        files, build = self.source / FILES, self.source / BUILD
        if not build.is_file():
            return files
        made = find_home().root / FOLDER / self.hash
        if made.is_dir():
            return made
        made.parent.mkdir(parents=True, exist_ok=True)
        with locked(made.parent / f".{self.hash}.lock", 2 * _BUILD_S):  # one process makes it, the others wait
            if not made.is_dir():
                _build(files, build, made)
        return made


@lru_cache(maxsize=64)
def _listing(folder: Path, made_from: str) -> frozenset[str]:
    return frozenset(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def read_worlds(folder: Path) -> dict[str, WorldOfSuite]:
    """Reads the worlds of a suite.

    Raises:
        InputError: lists every problem.
    """
    place = folder / FOLDER
    found, problems = dict[str, WorldOfSuite](), list[Problem]()
    for one in sorted(place.iterdir()) if place.is_dir() else ():
        if one.is_dir() and not one.name.startswith("."):
            try:
                found[one.name] = _read_world(one)
            except InputError as error:
                problems += error.problems
    if not found and not problems:
        problems.append(Problem(str(place), None, "", f"has no worlds; expected folders with a '{TOLD}'"))
    if problems:
        raise InputError(problems)
    return found


def _read_world(folder: Path) -> WorldOfSuite:
    path = folder / TOLD
    try:
        text = read_text(path)
        check_yaml(text)
        told = _WorldFile.model_validate(yaml.safe_load(text) or {})
    except FileNotFoundError:
        raise InputError([Problem(str(path), None, "", "there is no such file; it describes the world")]) from None
    except OSError as error:
        raise InputError([Problem(str(path), None, "", why_unread(error))]) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        raise InputError([Problem(str(path), line, "", f"is no YAML: {error}")]) from None
    except ValidationError as error:
        raise InputError(
            Problem(str(path), None, dotted(found.location), found.message) for found in complaints(error, _WorldFile)
        ) from None
    problems = list(_problems(folder, told))
    if problems:
        raise InputError(problems)
    hashes: list[Json] = [[path.relative_to(folder).as_posix(), file_hash(path)] for path in _files(folder)]
    return WorldOfSuite(folder.name, told.description, told.databases, json_hash(hashes), folder)


def _problems(folder: Path, told: _WorldFile) -> Iterator[Problem]:
    if not (folder / FILES).is_dir() and not (folder / BUILD).is_file():
        yield Problem(str(folder), None, "", f"expected a folder '{FILES}' or a program '{BUILD}', or both")
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            yield Problem(str(path), None, "", "expected regular files and folders only")
    for name, one in told.databases.items():
        inside = (folder / FILES / one.file).resolve()
        if not inside.is_relative_to((folder / FILES).resolve()):
            yield Problem(str(folder / TOLD), None, f"databases.{name}.file", f"'{one.file}' is not in the world")
        elif not inside.is_file() and not (folder / BUILD).is_file():
            yield Problem(str(folder / TOLD), None, f"databases.{name}.file", f"there is no '{FILES}/{one.file}'")


def _files(folder: Path) -> list[Path]:
    kept = (folder / TOLD, folder / BUILD, *(folder / FILES).rglob("*"))
    return sorted(path for path in kept if path.is_file())


def _build(files: Path, build: Path, made: Path) -> None:
    """Runs `build.py` in a jail over the files of a world, and keeps what comes of it."""
    from eval_pipeline.sandbox.world import WorldError
    from eval_pipeline.tracks.agent.running.blocking import build_worlds

    base = made.with_name(f".{made.name}.making")
    shutil.rmtree(base, ignore_errors=True)  # of a process that was killed
    base.mkdir()
    try:
        if files.is_dir():
            shutil.copytree(files, base, dirs_exist_ok=True)
        try:
            found = build_worlds().changed(base, read_text(build), _BUILD_S)
        except WorldError as error:
            raise EvalError(f"{build} fails: {error}") from error
        if isinstance(found, str):
            raise EvalError(f"{build} fails: {found}")
        for path, one in found.items():
            target = base / path
            if one.kind == "removed":
                shutil.rmtree(target) if target.is_dir() else target.unlink()
            elif one.kind == "folder":
                target.mkdir(parents=True, exist_ok=True)
            elif one.kind == "file" and one.body is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(one.body)
            else:
                raise EvalError(f"{build} makes '{path}', which cannot be kept: a link, no file, or too large")
        os.rename(base, made)
    finally:
        shutil.rmtree(base, ignore_errors=True)
