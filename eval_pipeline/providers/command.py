"""The provider `command`: runs the user's own agent, whatever it is made of, in the jail of a task.

It is evaluated as it is: its prompts, its tools, its loop. Only its calls of models pass through us.
"""

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from eval_pipeline.core.ids import files_hash, json_hash
from eval_pipeline.core.model import Json, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.reading.complaints import Complaint
from eval_pipeline.core.system.programs import OwnProgram
from eval_pipeline.providers.base import Call, Environment, FatalCallError, Traits
from eval_pipeline.providers.http.endpoints import BaseUrl, EnvironmentName
from eval_pipeline.providers.validation import Settings, SettingsError, read_settings, refuse_settings

_LEFT_OUT = frozenset({"__pycache__", ".git"})
_EVERYWHERE = ("/usr", "/bin", "/lib", "/lib64", "/sbin")
"""What a jail shows anyway."""
Given = Annotated[str, Field(min_length=1)]
Wire = Literal["anthropic", "openai"]


VENDORS: Mapping[Wire, BaseUrl] = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
"""For each form of calls the address of who made it."""


class CommandSettings(Settings):
    """How the program is started; `options` of the model version.

    Attributes:
        command: the program with its arguments; `{task}` in one stands for the task's text.
        folder: its own files, which it can read.
        upstream: for each form of calls the address that they are passed on to.
        env: settings that it finds in its environment.
        venv: a virtual environment with its packages; by default it has those that are installed here.
        mounts: further files and folders that it can read, at their own places.
    """

    command: tuple[Given, ...] = Field(min_length=1)
    folder: Given | None = None
    upstream: dict[Wire, BaseUrl] = Field(default_factory=lambda: {**VENDORS}, min_length=1)
    env: dict[EnvironmentName, str] = Field(default_factory=dict)
    venv: Given | None = None
    mounts: tuple[Given, ...] = ()


class CommandProvider(Traits):
    """Says what is run; who makes attempts runs it, and passes its calls on."""

    own_agent: ClassVar[bool] = True
    has_tools: ClassVar[bool] = True
    can_judge: ClassVar[bool] = False

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        refuse_settings(version, "predictions", "sampling", "batch")
        self._version, self._environment = version, environment
        self._settings = read_settings(CommandSettings, version)

    @classmethod
    def own_files(cls, version: ModelVersion, environment: Environment) -> str:
        """Returns a hash of the program's folder and of the packages of its own; empty if these are not there."""
        try:
            return cls(version, environment).files
        except SettingsError:
            return ""

    @cached_property
    def files(self) -> str:
        """A hash of the program's folder and of the packages of its own. Raises a SettingsError."""
        program = self.program
        found = [] if program.folder is None else [*_files(program.folder)]
        venv = self._place("venv", self._settings.venv)
        packages = [] if venv is None else sorted(one.name for one in venv.glob("lib/*/site-packages/*.dist-info"))
        return json_hash([files_hash(found), packages])

    @cached_property
    def program(self) -> OwnProgram:
        """The program, with the folders as they are on this machine.

        Raises:
            SettingsError: a folder is not there, or holds what no program may see.
        """
        settings = self._settings
        folder, venv = self._place("folder", settings.folder), self._place("venv", settings.venv)
        shown = [self._place("mounts", one, is_folder=False) for one in settings.mounts]
        if venv is not None and not os.path.lexists(venv / "bin" / "python"):
            raise self._wrong("venv", f"{venv} is no virtual environment: it has no bin/python")
        return OwnProgram(
            settings.command,
            settings.env,
            folder,
            (*([] if venv is None else [venv, *_bases(venv)]), *filter(None, shown)),
            () if venv is None else (venv / "bin",),
            venv is not None,
        )

    @property
    def upstream(self) -> Mapping[str, str]:
        """For each form of calls the address that they are passed on to."""
        return {str(wire): address for wire, address in self._settings.upstream.items()}

    def request(self, call: Call) -> Json:
        """Returns all that decides what the program does: its settings and files, the task and its limits."""
        text, surroundings = call.task.for_program()
        settings = self._settings.model_dump(mode="json")
        return {"settings": settings, "files": self.files, "task": text, "surroundings": surroundings}

    def prompt_shown(self, call: Call) -> str:
        """Returns the task as the program is told it; what it tells its model is its own."""
        return call.task.for_program()[0]

    async def generate(self, call: Call) -> Response:
        """Raises a FatalCallError: a program is run, not asked."""
        raise FatalCallError(f"model version '{self._version.name}' is a program, which only suites of agents can run")

    async def __aenter__(self) -> Self:
        """Raises a SettingsError as `program` does."""
        assert self.program
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def _place(self, field: str, told: str | None, *, is_folder: bool = True) -> Path | None:
        """Returns the place of a folder, or of a file or folder. Raises a SettingsError."""
        if told is None:
            return None
        place = (Path(self._environment.project) / Path(told).expanduser()).absolute()
        if not (place.is_dir() if is_folder else place.exists()):
            raise self._wrong(field, f"there is no {'folder' if is_folder else 'file or folder'} {place}")
        real = place.resolve()
        for private in map(Path, self._environment.private):
            if real.is_relative_to(private.resolve()) or private.resolve().is_relative_to(real):
                raise self._wrong(field, f"{place} would show {private}, where gold answers or the home are")
        try:
            socket = next(_sockets(place), None)
        except OSError as error:
            why = f"{error.filename} cannot be listed, so that nobody knows whether it has sockets"
            raise self._wrong(field, f"{why}: {error.strerror}") from error
        if socket is not None:
            raise self._wrong(field, f"{socket} is a socket, by which a program would reach what listens there")
        return place

    def _wrong(self, field: str, why: str) -> SettingsError:
        return SettingsError(self._version.name, (Complaint(("options", field), why),))


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yields the files of a folder by their paths in it."""
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        for path in (Path(top, name) for name in names):
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path


def _sockets(place: Path) -> Iterator[str]:
    """Yields the sockets in a folder, or the place itself if it is one."""
    if place.is_socket():
        yield str(place)
    waiting = [str(place)] if place.is_dir() else []
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink() and Path(entry).is_socket():
                    yield entry.path


def _bases(venv: Path) -> list[Path]:
    """Returns the folders of a virtual environment's interpreter, and of the links on the way to it."""
    found, at = list[Path](), venv / "bin" / "python"
    while at.is_symlink():
        at = at.parent / os.readlink(at)
        home = Path(os.path.normpath(at)).parents[1]
        if home not in (venv, Path("/"), *found) and not str(home).startswith(_EVERYWHERE):
            found.append(home)
    return found
