"""The worlds of a suite: folders below `worlds/`, each with a `world.yaml`, files, and what makes more of them."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from eval_pipeline.core.errors import EvalError, InputError, Problem
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import file_hash, json_hash
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.core.reading.foreign import check_yaml, read_text, why_unread
from eval_pipeline.core.values import value
from eval_pipeline.sandbox.layers import Layer, read_layer
from eval_pipeline.sandbox.tiers import NoSandboxError
from eval_pipeline.sandbox.world.changes import ChangedFile
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.sandbox.world.hosted import NO_POSTGRES, Hosted, hosted_place, installed_postgres
from eval_pipeline.store.durable import locked
from eval_pipeline_plugins.tracks.agent.cases.settings import STRICT

FOLDER, TOLD, FILES, BUILD = "worlds", "world.yaml", "files", "build.py"
_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
_BUILD_S = 120.0


class WorldDatabase(BaseModel):
    """A database of a world.

    Attributes:
        file: its file in the world, of SQLite or DuckDB.
        scripts: for one of PostgreSQL, which has none: the scripts beside `world.yaml` that make it, in order.
        read_only: whether the tool `sql` only reads it.
    """

    model_config = STRICT

    file: Annotated[str | None, Field(min_length=1)] = None
    scripts: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    read_only: bool = False

    @model_validator(mode="after")
    def _is_somewhere(self) -> "WorldDatabase":
        if (self.file is None) == (not self.scripts):
            raise ValueError("expected 'file', or 'scripts' that make a database of PostgreSQL")
        return self

    def place(self, name: str) -> str:
        """Returns its path in an end state; `name` is its own."""
        return hosted_place(name) if self.file is None else self.file


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
        layer: the suite's further packages, if it lists some.
    """

    name: str
    description: str
    databases: Mapping[str, WorldDatabase]
    hash: str
    source: Path
    layer: Layer | None = None

    @property
    def packages(self) -> Path | None:
        """The folder of further packages. Raises a MissingPackagesError if they are not installed."""
        return None if self.layer is None else self.layer.ready()

    @property
    def files(self) -> dict[str, tuple[str, bool]]:
        """The databases as `Worlds.open` takes them."""
        return {name: (one.place(name), one.read_only) for name, one in self.databases.items()}

    def hosted(self) -> Hosted | None:
        """Returns the databases of PostgreSQL, if it has some; they are made once for each home and version of it.

        Raises:
            EvalError: a script fails.
            NoSandboxError: this machine has no jail to run it in, or no PostgreSQL.
        """
        names = [name for name, one in self.databases.items() if one.scripts]
        if not names:
            return None
        found = installed_postgres()
        if found is None:
            raise NoSandboxError(f"the world '{self.name}' has a database of PostgreSQL: {NO_POSTGRES}")
        programs, version = found
        made = find_home().root / FOLDER / json_hash([self.hash, "postgres", version])
        _once(made, lambda: _host(self, programs, made))
        return Hosted(programs, made)

    def listing(self) -> frozenset[str]:
        """Returns the paths of the files in it."""
        folder = self.folder()
        return _listing(folder, self.hash)

    def began(self, path: str) -> Path | None:
        """Returns where a file is as it began; None if there is none, or this home has not made the world yet."""
        files = find_home().root / FOLDER / self.hash if (self.source / BUILD).is_file() else self.source / FILES
        with suppress(OSError, ValueError):  # a model may name a file in any way
            place = (files / path).resolve()
            return place if place.is_relative_to(files.resolve()) and place.is_file() else None
        return None

    def told(self) -> Json:
        """Returns all of it that does not depend on where it is."""
        found: dict[str, Json] = {
            name: {key: told for key, told in one.model_dump(mode="json").items() if told not in (None, [])}
            for name, one in self.databases.items()
        }
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
        packages = self.packages
        _once(made, lambda: _build(files, build, made, packages))
        return made


@lru_cache(maxsize=64)
def _listing(folder: Path, made_from: str) -> frozenset[str]:
    return frozenset(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def read_worlds(folder: Path, packages: str | None = None) -> dict[str, WorldOfSuite]:
    """Reads the worlds of a suite, which have the packages that a file of that name in its folder lists.

    Raises:
        InputError: lists every problem.
    """
    place = folder / FOLDER
    layer = None if packages is None else read_layer(folder / packages, find_home().packages)
    found, problems = dict[str, WorldOfSuite](), list[Problem]()
    for one in sorted(place.iterdir()) if place.is_dir() else ():
        if one.is_dir() and not one.name.startswith("."):
            try:
                found[one.name] = _read_world(one, layer)
            except InputError as error:
                problems += error.problems
    if not found and not problems:
        problems.append(Problem(str(place), None, "", f"has no worlds; expected folders with a '{TOLD}'"))
    if problems:
        raise InputError(problems)
    return found


def _read_world(folder: Path, layer: Layer | None) -> WorldOfSuite:
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
    hashes: list[Json] = [[path.relative_to(folder).as_posix(), file_hash(path)] for path in _files(folder, told)]
    hashes += [] if layer is None else [list(layer.requirements)]
    return WorldOfSuite(folder.name, told.description, told.databases, json_hash(hashes), folder, layer)


def _problems(folder: Path, told: _WorldFile) -> Iterator[Problem]:
    if not (folder / FILES).is_dir() and not (folder / BUILD).is_file():
        yield Problem(str(folder), None, "", f"expected a folder '{FILES}' or a program '{BUILD}', or both")
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            yield Problem(str(path), None, "", "expected regular files and folders only")
    for name, one in told.databases.items():
        for script in one.scripts:
            if Path(script).name != script or not (folder / script).is_file():
                yield Problem(
                    str(folder / TOLD), None, f"databases.{name}.scripts", f"there is no '{script}' beside it"
                )
        if one.file is None:
            continue
        inside = (folder / FILES / one.file).resolve()
        if not inside.is_relative_to((folder / FILES).resolve()):
            yield Problem(str(folder / TOLD), None, f"databases.{name}.file", f"'{one.file}' is not in the world")
        elif not inside.is_file() and not (folder / BUILD).is_file():
            yield Problem(str(folder / TOLD), None, f"databases.{name}.file", f"there is no '{FILES}/{one.file}'")


def _files(folder: Path, told: _WorldFile) -> list[Path]:
    scripts = (folder / script for one in told.databases.values() for script in one.scripts)
    kept = {folder / TOLD, folder / BUILD, *scripts, *(folder / FILES).rglob("*")}
    return sorted(path for path in kept if path.is_file())


def _once(made: Path, make: Callable[[], None]) -> None:
    """Makes a folder that is not there; one process does, the others wait."""
    if not made.is_dir():
        made.parent.mkdir(parents=True, exist_ok=True)
        with locked(made.parent / f".{made.name}.lock", 2 * _BUILD_S):
            if not made.is_dir():
                make()


def _build(files: Path, build: Path, made: Path, packages: Path | None) -> None:
    """Runs `build.py` in a jail over the files of a world, and keeps what comes of it."""
    from eval_pipeline_plugins.tracks.agent.running.blocking import build_worlds

    with _in_the_making(made) as base:
        if files.is_dir():
            shutil.copytree(files, base, dirs_exist_ok=True)
        try:
            found = build_worlds().changed(base, read_text(build), _BUILD_S, packages)
        except WorldError as error:
            raise EvalError(f"{build} fails: {error}") from error
        if isinstance(found, str):
            raise EvalError(f"{build} fails: {found}")
        _write(base, found, str(build))


def _host(world: WorldOfSuite, programs: str, made: Path) -> None:
    """Makes the databases of PostgreSQL in a jail, and keeps the files of the server."""
    from eval_pipeline_plugins.tracks.agent.running.blocking import build_worlds

    scripts = {
        name: [read_text(world.source / script) for script in one.scripts]
        for name, one in world.databases.items()
        if one.scripts
    }
    with _in_the_making(made) as base:
        try:
            found = build_worlds().hosted(base, Hosted(programs), world.files, scripts)
        except WorldError as error:
            raise EvalError(f"the world '{world.name}': {error}") from error
        _write(base, found, f"the world '{world.name}'")
        (base / "data").chmod(0o700)  # else the server refuses it


@contextmanager
def _in_the_making(made: Path) -> Iterator[Path]:
    """Gives a folder that is to be at a place when all is in it; else it is gone."""
    base = made.with_name(f".{made.name}.making")
    shutil.rmtree(base, ignore_errors=True)  # of a process that was killed
    base.mkdir()
    try:
        yield base
        os.rename(base, made)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _write(base: Path, found: Mapping[str, ChangedFile], by: str) -> None:
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
            raise EvalError(f"{by} makes '{path}', which cannot be kept: a link, no file, or too large")
