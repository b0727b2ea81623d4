"""The zygote: a process in the jail that has pandas imported and forks a child for each snippet.

Frames come in on standard input and go out on standard output: the lengths of header and body (four bytes each), a
JSON header, the body. The zygote trusts what comes in and nothing of what a child writes: that is only copied.

    {"op": "tables", "tables": [{"name", "format", "bytes"}, ...]}, body: the tables one after the other
        → {"problem": sentence or null}
    {"op": "run", "wall_s": seconds, "kept": whether in the process of trusted code, see `kept`}, body: the code
        → what `Child.run` returns, "output_bytes", "clean", body: the output, then the result
    {"op": "check", "wall_s": seconds, "tests_bytes"}, body: {"tests", "reference", "answer"} as JSON, then the code
        → the same for `Child.check`; the result is that of the tests
"""

import gc
import json
import os
import platform
import struct

from . import privileges, seccomp
from .buffers import Buffer
from .child import Child, Configuration, Told
from .kept import KeptChild
from .scratch import renew
from .tables import PackedFiles, read_tables

_HEAD = struct.Struct("<II")
_IDLE_RUNS, _IDLE_S = 3, 10.0


def serve(configuration: Configuration) -> None:
    """Answers requests until standard input ends.

    Args:
        configuration: contains the limits; either `mounted` (see `Separation`) or `wiped` (the folders that snippets
            share and that are emptied after each snippet); `landlock` (what a snippet may read if Landlock confines
            it); `seccomp` (whether the system-call filter is used).
    """
    privileges.die_with(os.getppid())
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.chdir(next(iter(configuration["wiped"]), "/"))
    warm_up(landlock=bool(configuration["landlock"]))
    if configuration["seccomp"]:
        if not configuration["mounted"]:  # otherwise the processes of snippets drop the right to mount
            privileges.drop_capabilities()
        else:
            seccomp.program(1, platform.machine())  # each of them has this number; its children find it made
        privileges.be_unreadable()
    Zygote(configuration, requests, answers).serve()


def warm_up(*, landlock: bool) -> None:
    """Imports everything that would be imported late, so that no snippet has to spend time on it."""
    import pandas as pd

    from . import checker, encode, outputs, served  # noqa: F401

    frame = pd.DataFrame({"a": [1, 2, 2], "b": ["x", "y", None], "c": pd.to_datetime(["2020-01-01"] * 3)})
    frame.groupby("a").agg({"c": "max"})
    frame.merge(frame, on="a").sort_values("a").query("a > 1")
    frame.pivot_table(index="b", values="a", aggfunc="sum")
    frame["c"].dt.strftime("%Y")
    frame["b"].str.upper()
    frame.describe()
    if landlock:
        import sandlock  # noqa: F401
    gc.collect()
    gc.freeze()  # a garbage collection in a child would touch every page and thereby copy it


class Zygote:
    """Serves one pair of pipes."""

    def __init__(self, configuration: Configuration, requests: int, answers: int) -> None:
        self._configuration = configuration
        self._requests, self._answers = requests, answers
        self._code = Buffer(configuration["code_bytes"], inherited=True)
        self._child = Child(configuration, self._code)
        self._kept = KeptChild(configuration, self._child)
        self._tables: Told = {}
        self._packed = PackedFiles()

    def serve(self) -> None:
        """Answers requests until there are no more."""
        self._measure_idle()
        self._send({"problem": None})
        while head := self._take(_HEAD.size):
            header_bytes, body_bytes = _HEAD.unpack(head)
            header = json.loads(self._take(header_bytes))
            if header["op"] == "tables":
                self._send({"problem": self._read_tables(PackedFiles(header["tables"], self._take(body_bytes)))})
            else:
                told = self._run(header, body_bytes)
                output, result = self._child.output.contents(), self._child.result.contents()
                self._send({**told, "output_bytes": len(output)}, output, result)

    def _run(self, header: Told, body_bytes: int) -> Told:
        """Runs the code in a child.

        Returns its costs minus those of an idle child, and whether its traces were removed.
        """
        if header["op"] == "check":
            tests_bytes = header["tests_bytes"]
            self._read_code(tests_bytes)
            code_bytes = body_bytes - tests_bytes
            told = self._child.check(self._tables, header["wall_s"], lambda: self._read_code(code_bytes))
        else:
            self._read_code(body_bytes)
            given = self._packed, self._tables, header["wall_s"], self._idle_bytes
            if header.get("kept") and self._configuration["mounted"]:
                told = self._kept.run(self._code, *given)
            else:
                told = self._child.run(self._tables, header["wall_s"])
        told["seconds"] = max(0.0, told["seconds"] - self._idle_seconds)
        told["peak_bytes"] = max(0, told["peak_bytes"] - self._idle_bytes)
        told["clean"] = not [folder for folder in self._configuration["wiped"] if not renew(folder)]
        return told

    def _read_code(self, count: int) -> None:
        while self._code.length < count:
            self._code.read(self._requests, count - self._code.length)

    def _measure_idle(self) -> None:
        """Measures the least CPU time and peak memory of a child that does nothing."""
        self._idle_seconds, self._idle_bytes = 0.0, 0
        told = [self._child.run(self._tables, _IDLE_S) for _ in range(_IDLE_RUNS)]
        self._idle_seconds = min(one["seconds"] for one in told)
        self._idle_bytes = min(one["peak_bytes"] for one in told)

    def _read_tables(self, packed: PackedFiles) -> str | None:
        """Reads the tables; returns a sentence if one cannot be read."""
        self._tables, self._packed = {}, packed
        try:
            self._tables = read_tables(packed)
        except ValueError as error:
            return str(error)
        self._measure_idle()
        return None

    def _take(self, count: int) -> bytes:
        """Returns this number of bytes of the requests, or fewer at their end."""
        parts = bytearray()
        while len(parts) < count and (part := os.read(self._requests, count - len(parts))):
            parts += part
        return bytes(parts)

    def _send(self, header: Told, *bodies: memoryview) -> None:
        text = json.dumps(header).encode()
        head = _HEAD.pack(len(text), sum(len(body) for body in bodies)) + text
        for part in (memoryview(head), *bodies):
            while part:
                part = part[os.write(self._answers, part) :]
