"""Servers of tools that a suite brings, each in a process: JSON-RPC by lines of standard input and output, as in MCP.

They are confined as all that runs in the world, and see their own folder besides. Nobody trusts what they tell.
"""

import json
import os
import select
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from .child import Child, Told
from .cut_text import cut_text
from .sessions import SESSION_CPU_S, Living, StoppedError, as_in_a_shell, enter, environment

FOLDER = "/tools"
_VERSION = "2025-06-18"
_MOST_LINE, _CHUNK = 8 << 20, 1 << 16
_MOST_PAGES = 100
_WATCH_S = 0.02
_LAST_WORDS = 300
_INVALID, _UNKNOWN = -32602, -32601


class BrokenError(Exception):
    """The server cannot be used any more; the message says why, after its name."""


class RefusedError(Exception):
    """The server answered a request with an error, whose code and message are the arguments."""


class Server(Living):
    """A server. It is started with the first request, and anew after it was ended."""

    def __init__(self, child: Child, name: str, command: Sequence[str], own: dict[str, str]) -> None:
        """Starts nothing yet.

        Args:
            child: starts it.
            name: what it is called.
            command: with its arguments.
            own: what it finds in its environment besides.
        """
        super().__init__(child)
        self._name, self._command, self._own = name, command, own
        self._lines: Lines | None = None

    def call(self, name: str, arguments: dict[str, Any], seconds: float, most: int) -> Told:
        """Calls a tool, for so many seconds; returns what it gave, cut to `most` bytes."""
        note = f"(the server '{self._name}' of this tool was started anew)\n" if self.lost else ""
        told = self._ask("tools/call", {"name": name, "arguments": arguments}, seconds)
        if "result" not in told:
            return {**told, "text": note}
        text = _text(told["result"])
        if told["result"].get("isError") is True:
            message = cut_text(text or "the tool failed and does not say why", most)
            return {"error": {"types": ["ToolError"], "message": message["text"]}, "text": note, "cut": message["cut"]}
        shown = cut_text(text, most)
        return {**shown, "text": note + shown["text"]}

    def listed(self, seconds: float) -> Told:
        """Returns `{"tools"}` with all tools as the server tells them, or what went wrong."""
        found: list[Any] = []
        cursor: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            told = self._ask("tools/list", cursor, seconds)
            if "result" not in told:
                return told
            page = told["result"]
            tools = page.get("tools")
            found += tools if isinstance(tools, list) else []
            if not isinstance(page.get("nextCursor"), str):
                return {"tools": found}
            cursor = {"cursor": page["nextCursor"]}
        return _error([], f"the server '{self._name}' lists its tools on more than {_MOST_PAGES} pages")

    def _ask(self, method: str, params: dict[str, Any], seconds: float) -> Told:
        """Returns `{"result"}`, or what went wrong; a server that uses too much or says what is no answer is ended."""
        self._wake(seconds)
        try:
            lines = self._lines or self._begin()
            return {"result": lines.ask(method, params)}
        except RefusedError as error:
            code, message = error.args
            return _error(["ValueError"] if code == _INVALID else [], message)
        except StoppedError as error:
            self._give_up()
            return {"stopped": str(error), "text": ""}
        except BrokenError as error:
            told = f"the server '{self._name}' of this tool {error}{self._last_words()}"
            self._give_up()
            return _error([], told)

    def _last_words(self) -> str:
        said = b"" if self._lines is None else self._lines.said
        words = said.decode("utf-8", "replace").split()
        return f"; it said at last: {' '.join(words)[-_LAST_WORDS:]}" if words else ""

    def _give_up(self) -> None:
        self.end()
        self.lost = True

    def _begin(self) -> "Lines":
        asking, answering, saying, starting = os.pipe(), os.pipe(), os.pipe(), os.pipe()
        self._lines = lines = Lines(answering[0], asking[1], saying[0], self._watch)
        problem = b""

        def ready() -> None:
            nonlocal problem
            for end in (asking[0], answering[1], saying[1], starting[1]):
                os.close(end)
            # What is written until the other end is closed, or nothing if that takes too long.
            while select.select([starting[0]], [], [], max(self._deadline - time.monotonic(), 1.0))[0]:
                part = os.read(starting[0], _CHUNK)
                if not part:
                    break
                problem += part
            os.close(starting[0])

        def serve() -> None:
            os.set_inheritable(3, False)  # so that it is closed when the program runs
            enter(FOLDER)
            as_in_a_shell()
            try:
                os.execvpe(self._command[0], [*self._command], os.environ | environment() | self._own)  # noqa: S606
            except (OSError, ValueError) as error:
                os.write(3, str(getattr(error, "strerror", None) or error).encode())

        ends = {0: asking[0], 1: answering[1], 2: saying[1], 3: starting[1]}
        self.pid = self._child.begin(ends, SESSION_CPU_S, serve, ready)
        if problem:
            raise BrokenError(f"cannot be started: {self._command[0]}: {problem.decode('utf-8', 'replace')}")
        about = {
            "protocolVersion": _VERSION,
            "capabilities": {},
            "clientInfo": {"name": "eval-pipeline", "version": "1"},
        }
        try:
            lines.ask("initialize", about)
        except RefusedError as error:
            raise BrokenError(f"refuses to begin: {error.args[1]}") from error
        lines.send({"method": "notifications/initialized"})
        return lines

    def end(self) -> None:
        """Ends the process, if there is one."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None
        super().end()


class Lines:
    """Requests and answers, one a line.

    Attributes:
        said: the last of what the server wrote to its standard error.
    """

    def __init__(self, reading: int, writing: int, saying: int, watch: Any) -> None:
        """Takes the descriptors; `watch` is called again and again while the server lets this process wait."""
        self._reading, self._writing, self._saying, self._watch = reading, writing, saying, watch
        self._logs, self._read, self._last = [saying], bytearray(), 0
        self.said = b""
        for descriptor in (reading, writing, saying):
            os.set_blocking(descriptor, False)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Returns the result of a request. Raises a RefusedError or a BrokenError."""
        self._last += 1
        self.send({"id": self._last, "method": method, "params": params})
        while True:
            match self._receive():
                case {"method": "ping", "id": one}:
                    self.send({"id": one, "result": {}})
                case {"method": str() as asked, "id": one}:
                    self.send({"id": one, "error": {"code": _UNKNOWN, "message": f"'{asked}' is not known here"}})
                case {"method": str()}:  # it tells something by the way
                    continue
                case {"id": one, "result": dict() as result} if one == self._last:
                    return result
                case {"id": one, "error": {"message": str() as message, **rest}} if one == self._last:
                    raise RefusedError(rest.get("code"), message)
                case {"id": int() as one, **rest} if 0 < one < self._last and rest.keys() & {"result", "error"}:
                    continue  # an answer that nobody waits for any more
                case told:
                    raise BrokenError(f"answers in no known form: {json.dumps(told)[:100]}")

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message. Raises a BrokenError if nobody reads it."""
        view = memoryview(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        while view:
            self._wait([], [self._writing])
            try:
                view = view[os.write(self._writing, view) :]
            except BrokenPipeError as error:
                self._hear_out()
                raise BrokenError("has ended") from error

    def _receive(self) -> Any:
        """Returns the next message."""
        while b"\n" not in self._read:
            if len(self._read) > _MOST_LINE:
                raise BrokenError(f"answers with more than {_MOST_LINE:,} bytes")
            self._wait([self._reading], [])
            part = os.read(self._reading, _CHUNK)
            if not part:
                self._hear_out()
                raise BrokenError("has ended")
            self._read += part
        line, _, rest = self._read.partition(b"\n")
        self._read = rest
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            shown = line[:100].decode("utf-8", "replace")
            told = f"prints what is no message: {shown!r}; on standard output there may only be messages"
            raise BrokenError(told) from error

    def _wait(self, reading: list[int], writing: list[int]) -> None:
        """Waits until one of these is ready; listens to what is said meanwhile, so that nobody waits to be heard."""
        while True:
            readable, writable, _ = select.select([*reading, *self._logs], writing, [], _WATCH_S)
            if self._saying in readable:
                self._hear()
            if writable or set(readable) & set(reading):
                return
            self._watch()

    def _hear(self) -> bool:
        """Hears what is said now; returns whether there was something."""
        with suppress(BlockingIOError):
            part = os.read(self._saying, _CHUNK)
            self.said = (self.said + part)[-4 * _LAST_WORDS :]
            if not part:
                self._logs = []
            return bool(part)
        return False

    def _hear_out(self) -> None:
        for _ in range(_CHUNK):
            if not self._hear():
                return

    def close(self) -> None:
        """Closes all descriptors."""
        for descriptor in (self._reading, self._writing, self._saying):
            os.close(descriptor)


def _error(types: list[str], message: str) -> Told:
    return {"error": {"types": ["ToolError", *types], "message": message}, "text": ""}


def _text(result: dict[str, Any]) -> str:
    """Returns a result as text; what is no text is named."""
    content = result.get("content")
    parts = [_part(one) for one in content] if isinstance(content, list) else []
    if not parts and "structuredContent" in result:
        return json.dumps(result["structuredContent"], ensure_ascii=False)
    return "\n".join(parts)


def _part(one: Any) -> str:
    match one:
        case {"type": "text", "text": str() as text} | {"type": "resource", "resource": {"text": str() as text}}:
            return text
        case {"type": "resource_link", "uri": str() as uri}:
            return uri
        case {"type": str() as kind}:
            return f"({one.get('mimeType') or kind}, which cannot be shown)"
    return "(something that cannot be shown)"
