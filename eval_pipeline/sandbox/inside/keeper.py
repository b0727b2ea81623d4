"""The keeper of a world: owns the overlay of one attempt, runs each call of a tool in a process, tells what changed.

Frames as in `zygote`:

    {"op": "begin", "files": [[path, bytes or null or {"link": target} or {"folder": true}], …]}, body: the files
        → {"problem": sentence or null}
    {"op": "call", "name", "arguments", "seconds", "server": name or null} → what the process gave; see `tools`
    {"op": "list", "server", "seconds"} → {"tools"} as the server tells them, or what went wrong
    {"op": "make", "scripts": {name: [text, …]}} → as `end`, the files of databases that are made; or {"problem"}
    {"op": "look", "name", "queries", "most_rows"} → {"problem": sentence or null}, body: see `postgres.look`
    {"op": "run", "command", "environment", "text", "seconds"} → {"ran"}: how the program ended; see `programs`.
        Meanwhile calls are made as ever, and answered before that
    {"op": "end"} → {"files": [[path, what], …], "left_out": [path, …]}, body: the files; or {"problem"}

Nothing that runs in the processes can reach this one: they are in PID namespaces of their own and without rights. What
they leave in the world is read as bytes only.
"""

import json
import os
import socket
import stat
import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from . import postgres
from .buffers import Buffer
from .child import Child, Configuration, Told
from .postgres import place
from .programs import ProgramRun
from .separation import Linked, Separation, give_room, mount_overlay
from .servers import FOLDER
from .tools import Tools

_HEAD = struct.Struct("<II")
LOWER, UPPER, WORLD = "/low", "/up", "/world"
_MAKE_S, _LOOK_S = 600.0, 60.0
_MOST_NAMES = 4 << 20  # as JSON
_LONGEST_PATH = 3500  # of a path's 4096 bytes, which include a name and the folder of the world


class UntoldError(Exception):
    """What databases hold cannot be told, which is no fault of an attempt."""


class Keeper:
    """Serves one attempt."""

    def __init__(self, configuration: Configuration, own: int, hosts: socket.socket, door: socket.socket) -> None:
        """Mounts the world.

        Args:
            configuration: see `worlds.serve`.
            own: the socket on which it is asked.
            hosts: see `Tools`.
            door: see `separation.Linked`.
        """
        self._own = own
        self._configuration = configuration
        mount_overlay(LOWER, UPPER, WORLD, configuration["world_bytes"], configuration["world_files"])
        self._hosted: list[str] = []
        databases: list[str] = []
        if configuration.get("postgres"):
            self._hosted = [name for name, (file, _) in configuration["databases"].items() if file == place(name)]
            databases = [postgres.LOWER, postgres.UPPER, postgres.FOLDER]
            mount_overlay(
                postgres.LOWER,
                postgres.UPPER,
                postgres.FOLDER,
                configuration["world_bytes"],
                configuration["world_files"],
            )
        self._were_asked = False
        child, serving = self._child(UPPER, LOWER, FOLDER, *databases), self._child(UPPER, LOWER, *databases)
        hosting = self._child(UPPER, LOWER, FOLDER, WORLD, *databases[:2], hosts=True)
        self._tools = Tools(child, serving, hosting, hosts, configuration)
        self._linked = Linked(configuration["mounted"], [UPPER, LOWER, FOLDER, *databases], door)

    def _child(self, *hidden: str, hosts: bool = False) -> Child:
        configuration = {**self._configuration, "hosts": hosts}
        return Child(configuration, Buffer(1), Separation(configuration["mounted"], hidden, apart=hosts))

    def serve(self) -> None:
        """Answers requests until there are no more."""
        self._send({"problem": None})
        while (asked := self._next()) is not None:
            header, body = asked
            match header["op"]:
                case "begin":
                    self._send({"problem": self._begin(header["files"], body)})
                case "call":
                    self._send(self._call(header))
                case "run":
                    child = Child({**self._configuration, "talks": True}, Buffer(1), self._linked)
                    self._send({"ran": ProgramRun(child, self._linked, self._meanwhile).run(header, self._own)})
                case "list":
                    self._send(self._tools.listed(header["server"], header["seconds"]))
                case "make":
                    self._make(header["scripts"])
                case "look":
                    self._look(header)
                case "end":
                    try:
                        databases = list(self._changed_databases())
                    except UntoldError as error:
                        self._send({"problem": str(error)})
                        continue
                    self._tools.end()
                    self._send_changes(chain(databases, changes(LOWER, os.path.join(UPPER, "u"), WORLD)))

    def _next(self) -> tuple[Told, bytes] | None:
        head = self._take(_HEAD.size)
        if not head:
            return None
        header_bytes, body_bytes = _HEAD.unpack(head)
        return json.loads(self._take(header_bytes)), self._take(body_bytes)

    def _meanwhile(self, program: int, seconds: float) -> bool:
        """Makes a call that is asked for while a program runs; returns whether there was one."""
        asked = self._next()
        if asked is None:
            return False
        header, _ = asked
        self._tools.beside = program
        try:
            self._send(self._call({**header, "seconds": min(header["seconds"], seconds)}))
        finally:
            self._tools.beside = 0
        return True

    def _call(self, header: Told) -> Told:
        self._were_asked |= header["name"] == "sql"
        return self._tools.call(header["name"], header["arguments"], header["seconds"], header["server"])

    def _make(self, scripts: Told) -> None:
        told = self._tools.of_databases({"op": "make", "scripts": scripts}, _MAKE_S)
        if set(told) & {"error", "stopped"}:
            self._send({"problem": told.get("stopped") or told["error"]["message"]})
        else:
            self._tools.end()
            self._send_changes(changes(postgres.LOWER, os.path.join(postgres.UPPER, "u"), postgres.FOLDER))

    def _look(self, header: Told) -> None:
        told = self._tools.of_databases(header, _LOOK_S)
        if set(told) & {"error", "stopped"} or os.path.getsize(postgres.LOOKED) > self._configuration["kept_bytes"]:
            self._send({"problem": told.get("stopped") or told.get("error", {}).get("message", "there is too much")})
            return
        with open(postgres.LOOKED, "rb", opener=_no_link) as file:
            self._send({"problem": None}, file.read())

    def _changed_databases(self) -> Iterator[tuple[str, Any]]:
        """Yields what databases on a server hold, if that is not what they held in the beginning."""
        waiting = {name: os.path.join(postgres.STATES, name) for name in self._hosted}
        asked = [name for name in self._hosted if self._were_asked and not os.path.exists(waiting[name])]
        if asked:  # what they hold is told even if nothing else had any room
            give_room(postgres.UPPER, *(2 * self._configuration[most] for most in ("world_bytes", "world_files")))
        untold = self._untold(asked)
        for name in self._hosted:
            before, now = os.path.join(postgres.LOWER, "dumps", name), os.path.join(postgres.DUMPS, name)
            if name not in asked:
                if os.path.exists(waiting[name]):
                    yield place(name), waiting[name]
            elif name in untold:
                yield place(name), {"special": True}
            elif not os.path.exists(now):
                yield place(name), None
            elif not _same(now, before):
                yield place(name), now

    def _untold(self, names: list[str]) -> list[str]:
        """Has databases tell what they hold; returns those that cannot, which is what was done in them.

        Raises:
            UntoldError: the server cannot tell of a database that nobody could change either.
        """
        if not names or not self._why_untold(names):
            return []
        untold = [name for name in names if self._why_untold([name])]
        if untold and (why := self._why_untold(["template1"])):
            raise UntoldError(f"what {', '.join(untold)} holds cannot be told: {why}")
        return untold

    def _why_untold(self, names: list[str]) -> str:
        told = self._tools.of_databases({"op": "dump", "names": names}, _LOOK_S)
        return str(told.get("stopped") or told.get("error", {}).get("message", ""))

    def _begin(self, files: list[Any], body: bytes) -> str | None:
        """Puts an earlier end state into the world."""
        start = 0
        try:
            for path, what in files:
                target = self._of_database(path) or os.path.join(WORLD, path)
                folder = os.path.dirname(target)
                if os.path.normpath(target) != target or not target.startswith((f"{WORLD}/", f"{postgres.STATES}/")):
                    return f"{path}: no path in the world"
                if os.path.realpath(folder) != folder:
                    return f"{path}: its folder is a link"
                _remove(target)
                if what is None and target.startswith(postgres.STATES):
                    what = 0  # a database that was dropped, or is not known, holds nothing
                if what is None:
                    continue
                os.makedirs(folder, exist_ok=True)
                if isinstance(what, int):
                    with open(target, "xb") as file:
                        file.write(body[start : start + what])
                    start += what
                elif "link" in what:
                    os.symlink(what["link"], target)
                else:
                    os.mkdir(target)
        except OSError as error:
            return f"{path}: {error.strerror}"
        return None

    def _of_database(self, path: str) -> str | None:
        """Returns where an earlier state of a database waits for its server, if a path is that of one."""
        return next((os.path.join(postgres.STATES, name) for name in self._hosted if path == place(name)), None)

    def _send_changes(self, found: Iterable[tuple[str, Any]]) -> None:
        files: list[Any] = []
        left_out: list[str] = []
        bodies: list[bytes] = []
        room, names = self._configuration["kept_bytes"], _MOST_NAMES
        for path, what in found:
            names -= len(json.dumps([path, "" if isinstance(what, str) else what]))
            if names < 0:
                left_out.append("…")
                break
            if isinstance(what, str):  # a file, whose bytes are read now
                size = os.lstat(what).st_size
                if size > room:
                    left_out.append(path)
                    continue
                with open(what, "rb", opener=_no_link) as file:
                    bodies.append(file.read(size))
                room -= size
                files.append([path, len(bodies[-1])])
            else:
                files.append([path, what])
        self._send({"files": files, "left_out": left_out}, b"".join(bodies))

    def _take(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count and (part := os.read(self._own, count - len(parts))):
            parts += part
        return bytes(parts)

    def _send(self, header: Told, body: bytes = b"") -> None:
        text = json.dumps(header).encode()
        for part in (memoryview(_HEAD.pack(len(text), len(body)) + text), memoryview(body)):
            while part:
                part = part[os.write(self._own, part) :]


def changes(lower: str, upper: str, merged: str) -> Iterator[tuple[str, Any]]:
    """Yields what differs between a world and its overlay, by path relative to both, sorted within each folder.

    What an overlay notes about removed files is not interpreted: only folders that it has touched are compared, as they
    appear. A file is yielded with its place, a removed path with None, a link and a new empty folder with what they
    are, anything else (also a folder whose path is too long) as `{"special": true}`. A file with the bytes that it had
    is no change.
    """
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        if len(os.fsencode(folder)) > _LONGEST_PATH:
            yield folder, {"special": True}
            continue
        before, now = (_names(os.path.join(top, folder)) for top in (lower, merged))
        if folder and not now and not before and not os.path.isdir(os.path.join(lower, folder)):
            yield folder, {"folder": True}
        touched = _names(os.path.join(upper, folder))
        for name in sorted({*before, *now}):
            path, is_before, is_now = os.path.join(folder, name), before.get(name), now.get(name)
            if is_now is None or (is_now == stat.S_IFDIR and is_before not in {None, stat.S_IFDIR}):
                yield path, None
            if is_now == stat.S_IFDIR and (name in touched or is_before is None):
                waiting.append(path)
            elif is_now not in {None, stat.S_IFDIR} and name in touched:
                yield from _changed(path, is_now, os.path.join(merged, path), os.path.join(lower, path))


def _changed(path: str, kind: int | None, now: str, before: str) -> Iterator[tuple[str, Any]]:
    """Yields what is at a path now if that was not there before."""
    if kind == stat.S_IFLNK:
        target = os.readlink(now)
        if not os.path.islink(before) or os.readlink(before) != target:
            yield path, {"link": target}
    elif kind != stat.S_IFREG:
        yield path, {"special": True}
    elif os.path.islink(before) or not os.path.isfile(before) or not _same(now, before):
        yield path, now


def _names(folder: str) -> dict[str, int]:
    """Returns the kinds of a folder's entries by name; nothing if it is none."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name: stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode) for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _same(one: str, other: str) -> bool:
    if os.lstat(one).st_size != os.lstat(other).st_size:
        return False
    with open(one, "rb", opener=_no_link) as first, open(other, "rb", opener=_no_link) as second:
        while True:
            part = first.read(1 << 20)
            if part != second.read(1 << 20):
                return False
            if not part:
                return True


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _remove(place: str) -> None:
    """Removes what is at a place of the world, which nobody else changes at this time."""
    import shutil

    if os.path.isdir(place) and not os.path.islink(place):
        shutil.rmtree(place)
    elif os.path.lexists(place):
        os.unlink(place)
