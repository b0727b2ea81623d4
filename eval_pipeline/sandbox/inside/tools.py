"""The tools of a world, in processes of their own. Nobody trusts anything that runs there.

A call gives `{"text", "rows", "size", "cut"}`, or `{"error": {"types", "message"}, "text"}`; `stopped` says why its
process was ended, if it was.
"""

import os
import signal
import socket
import sqlite3
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any, NoReturn

from . import postgres
from .child import Child, Configuration, Told, descends, running
from .cut_text import cut_text
from .exchange import Exchange
from .postgres_client import GivenRow, GivenRows, PostgresClient
from .servers import Server
from .sessions import WORLD, CodeSession, GuestSession, Living, answer_by, as_in_a_shell, enter, environment
from .snippet import described

_REST_S = 5.0
_MOST_ROWS = 1_000_000
_SQLITE = b"SQLite format 3\0"


class Tools:
    """The tools of one attempt.

    Commands run in a process each, Python in one that keeps its variables, and everything else in a third: what is
    written here is run there over whatever lies in the world. Nothing runs between calls, when nobody watches it: the
    processes that live on are stopped, and whatever they have started is ended.

    Attributes:
        beside: the first process of a program that runs beside them, which nobody ends here; 0 without one.
    """

    def __init__(
        self, child: Child, serving: Child, hosting: Child, hosts: socket.socket, configuration: Configuration
    ) -> None:
        """Starts nothing yet.

        Args:
            child: starts processes.
            serving: starts servers, which see what others do not.
            hosting: starts the server of databases, likewise.
            hosts: where a process with pandas is asked for.
            configuration: see `worlds.serve`.
        """
        self.beside = 0
        self._child, self._most = child, configuration["told_bytes"]
        self._most_processes = configuration["threads"]
        self._python = GuestSession(child, hosts)
        self._others = CodeSession(child, lambda: answer_by(lambda exchange: _serve_others(exchange, configuration)))
        self._known = configuration["databases"]
        hosted = partial(postgres.serve, configuration=configuration, show=_postgres)
        self._postgres = CodeSession(hosting, lambda: answer_by(hosted))
        self._servers = {name: Server(serving, name, *told) for name, told in configuration.get("servers", {}).items()}

    def call(self, name: str, arguments: dict[str, Any], seconds: float, server: str | None = None) -> Told:
        """Calls a tool, of a server if one is named, and returns what it gave."""
        if server is not None:
            told = self._servers[server].call(name, arguments, seconds, self._most)
            self._rest(self._servers[server])
            return told
        if name == "sql" and (hosted := self._hosted(arguments)) is not None:
            return self.of_databases({"op": "sql", **hosted, "query": arguments["query"]}, seconds)
        if name == "shell":
            told = self._child.do(lambda: _shell(arguments["command"]), seconds)
            return _printed(self._child, told, self._most)
        if name != "python":
            told = self._others.ask({"name": name, "arguments": arguments}, seconds)
            self._rest(self._others)
            return told
        note = "(the session was started anew: its variables are lost)\n" if self._python.lost else ""
        told = self._python.ask(arguments, seconds)
        self._rest(self._python)
        return {**told, "text": note + told["text"]}

    def _hosted(self, arguments: dict[str, Any]) -> Told | None:
        """Returns the database that is asked, if a server has it."""
        name = _chosen(arguments, self._known)
        file, readonly = self._known.get(name, ("", True))
        return {"name": name, "readonly": readonly} if file == postgres.place(name) else None

    def of_databases(self, request: Told, seconds: float) -> Told:
        """Returns what the server of databases answers; see `postgres.serve`."""
        told = self._postgres.ask(request, seconds)
        self._rest(self._postgres)
        return told

    def listed(self, server: str, seconds: float) -> Told:
        """Returns the tools of a server, as it tells them."""
        return self._servers[server].listed(seconds)

    def _rest(self, session: Living) -> None:
        """Stops a session until it is asked again; ends what it has started, or it with that."""
        deadline, pause = time.monotonic() + _REST_S, 1e-4
        while time.monotonic() < deadline:
            is_stopped = session.stop()
            found = running() - {os.getpid(), *(pid for one in self._all() for pid in (one.pid, one.acting))}
            of_program = {pid: descends(pid, self.beside) if self.beside else False for pid in found}
            others = [pid for pid, is_of in of_program.items() if is_of is False]
            if is_stopped and not others and None not in of_program.values():
                return
            if len(others) > self._most_processes:
                break
            for pid in others:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(pause)
            pause = min(2 * pause, 1e-2)
        session.end()
        session.lost = True

    def end(self) -> None:
        """Ends all processes."""
        for one in self._all():
            one.end()

    def _all(self) -> Sequence[Living]:
        return [self._python, self._others, self._postgres, *self._servers.values()]


def _printed(child: Child, told: Told, most: int) -> Told:
    """Returns what a command printed; its status is told if it is not 0."""
    shown = cut_text(bytes(child.output.contents()).decode("utf-8", "replace"), most)
    status = told["status"]
    if told["stopped"] is None and status:
        name = f"signal {-status}" if status < 0 else f"status {status}"
        return {**shown, "error": {"types": ["ShellError"], "message": f"the command ended with {name}"}}
    return {**shown, "stopped": told["stopped"]}


def _shell(command: str) -> NoReturn:
    enter(WORLD)
    as_in_a_shell()
    try:
        os.execve("/bin/sh", ["sh", "-c", command], os.environ | environment())  # noqa: S606
    except (OSError, ValueError) as error:  # it is too long, or has a zero
        os.write(1, f"the command cannot be run: {error}\n".encode())
        os._exit(126)


def _list_files(arguments: dict[str, Any], most: int, _: Configuration) -> Told:
    """Lists files with their sizes; folders end in a slash. Links are shown with their target and not followed."""
    top = arguments.get("path") or "."
    lines, found = [], 0
    for folder, folders, files in os.walk(top, onerror=_raise):
        folders.sort()
        for name in sorted([*folders, *files]):
            path = os.path.join(folder, name)
            shown = os.path.relpath(path, WORLD if os.path.isabs(path) else ".")
            if os.path.islink(path):
                lines.append(f"{shown} -> {os.readlink(path)}")
            elif name in folders:
                lines.append(f"{shown}/")
            else:
                lines.append(f"{shown} ({os.lstat(path).st_size:,} bytes)")
            found += 1
    return {**cut_text("\n".join(lines) or "(nothing)", most), "rows": found}


def _raise(error: OSError) -> NoReturn:
    raise error


def _read_file(arguments: dict[str, Any], most: int, _: Configuration) -> Told:
    offset = int(arguments.get("offset") or 0)
    with open(arguments["path"], "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(offset)
        part = file.read(most)
    text = part.decode("utf-8", "replace")
    end = offset + len(part)
    if end < size:
        text += f"\n… ({size:,} bytes; those from {offset:,} to {end:,} are shown)"
    return {"text": text, "size": size, "cut": end < size}


def _write_file(arguments: dict[str, Any], most: int, _: Configuration) -> Told:
    path, text = arguments["path"], arguments["text"].encode(errors="surrogatepass")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(text)
    return {"text": f"{len(text):,} bytes written to {path}", "size": len(text), "cut": False}


def _sql(arguments: dict[str, Any], most: int, configuration: Configuration) -> Told:
    known = configuration["databases"]
    name = _chosen(arguments, known)
    if name not in known:
        raise KeyError(f"there is no database {name!r}; there are: {', '.join(sorted(known)) or 'none'}")
    file, readonly = known[name]
    path = os.path.join(WORLD, file)
    with open(path, "rb") as opened:
        is_sqlite = opened.read(len(_SQLITE)) == _SQLITE
    query = arguments["query"]
    return _sqlite(path, query, readonly, most) if is_sqlite else _duckdb(path, query, readonly, most)


def _chosen(arguments: dict[str, Any], known: Iterable[str]) -> str:
    return arguments.get("database") or next(iter(known), "")


def _sqlite(path: str, query: str, readonly: bool, most: int) -> Told:
    # An immutable database leaves no files beside it, but what is in a write-ahead log would be overlooked.
    readable = "ro" if os.path.exists(f"{path}-wal") else "ro&immutable=1"
    mode = readable if readonly else "rw"
    with closing(sqlite3.connect(f"file:{urllib.parse.quote(path)}?mode={mode}", uri=True)) as database:
        told = cut_text("(nothing to run)", most)
        for statement in _statements(query):
            made = database.execute(statement)
            if made.description is None:
                told = cut_text(f"done; {max(made.rowcount, 0)} rows changed", most)
            else:
                told = _table([name for name, *_ in made.description], made, most)
        database.commit()
        return told


def _statements(query: str) -> list[str]:
    """Splits a script of SQLite at the semicolons that end a statement."""
    found, start = [], 0
    for place, letter in enumerate(query):
        if letter == ";" and sqlite3.complete_statement(query[start : place + 1]):
            found.append(query[start : place + 1])
            start = place + 1
    return [one for one in (*found, query[start:]) if one.strip(" \t\r\n;")]


def _duckdb(path: str, query: str, readonly: bool, most: int) -> Told:
    import duckdb

    with closing(duckdb.connect(path, read_only=readonly, config={"threads": 1})) as database:
        told = cut_text("(nothing to run)", most)
        for statement in database.extract_statements(query):
            made = database.execute(statement)
            if made.description is None:
                told = cut_text("done", most)
            else:
                told = _table([one[0] for one in made.description], iter(made.fetchone, None), most)
        return told


def _postgres(client: PostgresClient, query: str, most: int) -> Told:
    told = cut_text("(nothing to run)", most)

    def take(rows: GivenRows, found: Iterator[GivenRow]) -> None:
        nonlocal told
        count = rows.told.rpartition(" ")[2]
        done = f"done; {count} rows changed" if count.isdigit() else "done"
        told = _table(rows.names, found, most) if rows.names else cut_text(done, most)

    client.run(query, take)
    return told


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]], most: int) -> Told:
    """Returns rows as lines of a table; those that have no room are counted."""
    lines, size, shown, count = [cut_text(" | ".join(names), most)["text"]], 0, 0, 0
    for row in rows:
        count += 1
        if count > _MOST_ROWS:
            raise MemoryError(f"the result has more than {_MOST_ROWS:,} rows")
        line = " | ".join("NULL" if cell is None else str(cell) for cell in row)
        size += len(line.encode(errors="surrogatepass")) + 1
        if size <= most:
            lines.append(line)
            shown = count
    text = "\n".join(lines)
    if shown < count:
        text += f"\n… ({count:,} rows; the first {shown:,} are shown)"
    return {"text": text, "size": size, "cut": shown < count, "rows": count}


def _serve_others(exchange: Exchange, configuration: Configuration) -> None:
    known = {"sql": _sql, "list_files": _list_files, "read_file": _read_file, "write_file": _write_file}
    while True:
        asked = exchange.receive()
        try:
            told = known[asked["name"]](asked["arguments"], configuration["told_bytes"], configuration)
        except BaseException as error:
            told = {"error": described(error), "text": ""}
        exchange.send(told)
