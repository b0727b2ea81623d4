"""A process that runs trusted snippets one after the other. Standard library only.

A process copies each page of memory that it is the first to write to after it was forked. Code of pandas writes to
thousands, which takes longer than a small snippet itself. Only the first snippet in a kept process pays for that.

What comes next finds what a snippet has left in memory. So this is for a suite's own code of which it is known that it
leaves nothing, never for that of a model, nor for what has a part of it; who asks for it answers for that, as nothing
here looks at the code. Names, random numbers, and tables with all that is in their cells are new for each snippet. The
process has the rights and limits of any snippet, but its folders stay as they are, and what earlier snippets have left
in memory counts.

A request is a head, JSON that describes the tables (null: they are as before), the tables, and the code. Answers are a
byte once the tables are read, from when on the time of the snippet counts, and then what the snippet took.
"""

import json
import os
import pickle
import resource
import struct
import sys
import time
from collections.abc import Callable

from .buffers import Buffer
from .child import Child, Configuration, Tables, Told
from .snippet import namespace, run_snippet
from .tables import PackedFiles, read_tables

_HEAD, _TOLD = struct.Struct("<dIQI"), struct.Struct("<dQ")
_RESULT_FD, _ASKED_FD, _DONE_FD = 3, 4, 5
_CPU_S = 3600.0
_MOST_RUNS, _MOST_GROWTH = 100, 64 << 20
"""After so many runs, or with so much more memory than an idle process, it ends, so that each run has the same room."""


class KeptChild:
    """Starts the process when it is needed, and again when it has ended."""

    def __init__(self, configuration: Configuration, child: Child) -> None:
        """Starts nothing yet."""
        self._most, self._child = configuration["result_bytes"], child
        self._pid, self._runs = 0, 0
        self._tables: PackedFiles | None = None
        self._pipes: dict[int, Buffer] = {}
        self._asking = self._done = self._ended = -1

    def run(self, code: Buffer, packed: PackedFiles, tables: Tables, wall_s: float, idle_bytes: int) -> Told:
        """Runs a snippet; returns as `Child.run`.

        Args:
            code: its code, which is cleared.
            packed: the tables as they came.
            tables: the tables.
            wall_s: seconds that it may take.
            idle_bytes: peak memory of a process that does nothing.
        """
        if not self._pid:
            self._begin(packed, tables)
        for buffer in self._pipes.values():
            buffer.clear()
        try:
            self._send(code, packed, wall_s)
            os.read(self._done, 1)  # it has the tables, or has ended
            deadline = time.monotonic() + wall_s
            stopped = self._child.follow(self._pid, (self._ended, self._done), self._pipes, deadline)
            told = b"" if stopped else os.read(self._done, _TOLD.size)
        except BrokenPipeError:
            stopped, told = None, b""
        finally:
            code.clear()
        self._runs += 1
        if len(told) != _TOLD.size:  # it has ended, or is to
            return {"stopped": stopped, "status": self.end(), "seconds": 0.0, "peak_bytes": 0}
        seconds, peak_bytes = _TOLD.unpack(told)
        if self._runs >= _MOST_RUNS or peak_bytes - idle_bytes > _MOST_GROWTH:
            self.end()
        return {"stopped": None, "status": 0, "seconds": seconds, "peak_bytes": peak_bytes}

    def end(self) -> int:
        """Ends the process, if there is one; returns how it ended, as `subprocess`."""
        if not self._pid:
            return 0
        status = self._child.end(self._pid)
        for descriptor in (*self._pipes, self._asking, self._done, self._ended):
            os.close(descriptor)
        self._pid, self._pipes, self._tables = 0, {}, None
        return status

    def _begin(self, packed: PackedFiles, tables: Tables) -> None:
        output, output_end = self._child.pipe(self._child.output)
        result, result_end = self._child.pipe(self._child.result)
        (asked, self._asking), (self._done, done) = os.pipe(), os.pipe()
        given = {1: output_end, 2: output_end, _RESULT_FD: result_end, _ASKED_FD: asked, _DONE_FD: done}

        def ready() -> None:
            for end in (output_end, result_end, asked, done):
                os.close(end)
            os.read(self._done, 1)  # it has folders of its own

        self._pid = self._child.begin(given, _CPU_S, lambda: _serve(tables, self._most), ready)
        self._ended = os.pidfd_open(self._pid)
        self._pipes = {output: self._child.output, result: self._child.result}
        self._tables, self._runs = packed, 0

    def _send(self, code: Buffer, packed: PackedFiles, wall_s: float) -> None:
        """Sends a request, of which nothing stays in the memory of this process."""
        is_known, self._tables = packed is self._tables, packed
        described, body = json.dumps(None if is_known else packed.described).encode(), b"" if is_known else packed.body
        head = _HEAD.pack(wall_s, len(described), len(body), code.length)
        for part in (memoryview(head + described), memoryview(body), code.contents()):
            while part:
                part = part[os.write(self._asking, part) :]


def _serve(tables: Tables, most: int) -> None:
    """Runs what is asked for, until nobody asks any more."""
    os.write(_DONE_FD, b"r")
    own = _renewing(tables)
    with open(_ASKED_FD, "rb") as asked:
        while head := asked.read(_HEAD.size):
            wall_s, described_bytes, body_bytes, code_bytes = _HEAD.unpack(head)
            described, body = json.loads(asked.read(described_bytes)), asked.read(body_bytes)
            code = asked.read(code_bytes).decode("utf-8", "surrogatepass")
            if described is not None:
                own = _renewing(read_tables(PackedFiles(described, body)))
            names = namespace(own())
            os.write(_DONE_FD, b"r")
            before = time.process_time()
            resource.setrlimit(resource.RLIMIT_CPU, (int(before + wall_s) + 1, int(_CPU_S) + 1))
            run_snippet(code, names, _RESULT_FD, most)
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
            peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            resource.setrlimit(resource.RLIMIT_CPU, (int(_CPU_S) + 1, int(_CPU_S) + 1))  # tables have no limit
            os.write(_DONE_FD, _TOLD.pack(time.process_time() - before, peak_bytes))


def _renewing(tables: Tables) -> Callable[[], Tables]:
    """Returns a function that returns the tables as they are now, whatever is done to those that it has returned.

    Columns are copied by pandas where they are written to. Objects in cells, such as lists, are not.
    """
    dtypes = {str(getattr(dtype, "subtype", dtype)) for frame in tables.values() for dtype in frame.dtypes}
    if "object" in dtypes:
        packed = pickle.dumps(tables)
        return lambda: pickle.loads(packed)  # noqa: S301 - made here, before any code ran
    return lambda: {name: frame.copy(deep=False) for name, frame in tables.items()}
