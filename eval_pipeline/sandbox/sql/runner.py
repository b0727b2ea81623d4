"""Runs model-written queries in child processes that are reused as long as they work properly."""

import asyncio
import atexit
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import ErrorClass, Failed
from eval_pipeline.core.system.processors import processors
from eval_pipeline.sandbox.sql.deadline import PATIENCE
from eval_pipeline.sandbox.sql.errors import SqlError, UnreachableError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.live.places import DataPlace, LivePlace, place_to_text
from eval_pipeline.sandbox.sql.process import KilledError, SqlProcess
from eval_pipeline.sandbox.sql.rows import SqlRows

if TYPE_CHECKING:
    from eval_pipeline.sandbox.sql.effects.postgres_copy import ServerCopy
    from eval_pipeline.sandbox.sql.effects.state import Effects, Script

T = TypeVar("T")

_GRACE_S = 1.0
"""Seconds that an interrupted query gets to stop before its process is killed."""
_GRACE_ON_SERVER_S = 15.0
"""The same where a session on a server may have to be opened first, with pauses between the tries."""
_MOST_TASKS = 2_000
_TRIES = 3
"""Children that somebody else may kill before a task, or their start, has failed."""
_TASKS, _EFFECTS = "eval_pipeline.sandbox.sql.tasks", "eval_pipeline.sandbox.sql.effects.tasks"
_effects_from_wire: "Callable[[Any], Effects]" = Later("eval_pipeline.sandbox.sql.effects.state:effects_from_wire")
_COPIES = 4
"""How many times the limit of a script it may take with its copies and checks."""
_ENGINES = ("duckdb", "eval_pipeline.sandbox.sql.tasks")


class SqlProcesses:
    """Child processes that are made on demand and used for one task at a time. Any number of threads may use them."""

    def __init__(self, limits: SqlLimits, preload: tuple[str, ...] = _ENGINES, most: int | None = None) -> None:
        """Creates the object without starting any child yet.

        Args:
            limits: memory limit of each.
            preload: modules that each imports when it starts.
            most: maximum number of busy children at the same time; default: as many as there are processors for
                this process.
        """
        self._limits, self._preload = limits, preload
        self._places = threading.BoundedSemaphore(most or processors())
        self._lock = threading.Lock()
        self._idle: list[SqlProcess] = []
        self._busy: list[SqlProcess] = []
        self._closed = False

    def call(self, task: str, arguments: tuple[Any, ...], seconds: float, patience: float = PATIENCE) -> Any:
        """Returns the result of a task in any child, without counting the time spent waiting for one.

        A task whose child is killed is done again: a query that is to blame for it gets the next ones killed, too.
        See `SqlProcess.call`.

        Raises:
            RuntimeError: no child can be started, or `close` has ended the one with the task.
        """
        with self._places:
            for _ in range(_TRIES - 1):
                try:
                    return self._called(task, arguments, seconds, patience)
                except KilledError as error:
                    if self._closed:
                        raise RuntimeError("the processes for SQL were ended") from error
            return self._called(task, arguments, seconds, patience)

    def close(self) -> None:
        """Ends the children, with what they are doing: nobody waits for it any more."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for process in self._busy:
                process.stop()
        for process in idle:
            process.kill()

    def _called(self, task: str, arguments: tuple[Any, ...], seconds: float, patience: float) -> Any:
        process = self._take()
        with self._lock:
            self._busy.append(process)
            if self._closed:
                process.stop()
        try:
            return process.call(task, arguments, seconds, patience)
        finally:
            with self._lock:
                self._busy.remove(process)
            if process.alive and process.served < _MOST_TASKS:
                with self._lock:
                    self._idle.append(process)
            else:
                process.kill()

    def _take(self) -> SqlProcess:
        while True:
            with self._lock:
                process = self._idle.pop() if self._idle else None
            if process is None:
                # No task is to blame if a child is killed before it has one.
                for _ in range(_TRIES):
                    with suppress(KilledError):
                        return SqlProcess(self._limits, self._preload)
                raise RuntimeError("the process for SQL is killed whenever it starts, as happens without memory")
            if process.alive:
                return process
            process.kill()


class SqlRunner:
    """Runs queries on database files and servers, read-only and within limits; an asynchronous context manager.

    Whether a file is SQLite or DuckDB is seen from its contents. If a server does not answer, an UnreachableError is
    raised; it does not count as a failed query, so that no model's answer is scored as wrong because of it.
    """

    def __init__(self, limits: SqlLimits | None = None, most: int | None = None) -> None:
        """Starts nothing yet.

        Args:
            limits: limits of every query.
            most: maximum number of queries at the same time; default: as many as there are processors for
                this process.
        """
        self.limits = limits or SqlLimits()
        self._processes = SqlProcesses(self.limits, most=most)
        self._threads = ThreadPoolExecutor(most or processors(), thread_name_prefix="sql")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the child processes, and with them the queries that still run: nobody waits for them any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._processes.close()
        self._threads.shutdown(wait=True)

    async def run(self, database: DataPlace, sql: str, limits: SqlLimits | None = None) -> SqlRows | Failed:
        """Returns the rows of a query, or why it did not run; `limits` replace those of the runner."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.run_now, database, sql, limits)

    def run_now(self, database: DataPlace, sql: str, limits: SqlLimits | None = None) -> SqlRows | Failed:
        """Same as `run`, for callers without an event loop."""
        return self._guarded(lambda: self._rows(database, sql, limits or self.limits))

    def _rows(self, database: DataPlace, sql: str, limits: SqlLimits) -> SqlRows:
        arguments = (place_to_text(database), sql, limits.as_json())
        try:
            seconds = limits.seconds + _grace(database)
            told = self._processes.call(f"{_TASKS}:run_query", arguments, seconds, patience_with(database))
        except SqlError as error:
            # A server that hangs must not look like a query that takes too long.
            if isinstance(database, LivePlace) and error.error_class is ErrorClass.TIMEOUT:
                self._ping(database)
            raise
        rows = [tuple(row) for row in told["rows"]]
        return SqlRows(tuple(told["columns"]), rows, told["seconds"], told["cpu_seconds"])

    def time_pair_now(
        self, database: DataPlace, first: str, second: str, runs: int = 5
    ) -> tuple[float, float] | Failed:
        """Returns the least CPU seconds of each of two queries that run alternately, or why one did not run."""

        def timed() -> tuple[float, float]:
            arguments = (place_to_text(database), first, second, runs, self.limits.as_json())
            seconds = 2 * runs * self.limits.seconds + _grace(database)
            task = f"{_TASKS}:time_alternating"
            one, other = self._processes.call(task, arguments, seconds, patience_with(database))
            return one, other

        return self._guarded(timed)

    async def run_script(
        self, copied: "Path | ServerCopy", script: "Script", limits: SqlLimits | None = None
    ) -> "Effects | Failed":
        """Returns what a script does to a private copy, or why that cannot be said; see `run`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.run_script_now, copied, script, limits)

    def run_script_now(
        self, copied: "Path | ServerCopy", script: "Script", limits: SqlLimits | None = None
    ) -> "Effects | Failed":
        """Same as `run_script`, for callers without an event loop."""

        def effects() -> "Effects":
            on_server = not isinstance(copied, Path)
            place = place_to_text(copied) if isinstance(copied, Path) else copied.as_json()
            given = limits or self.limits
            seconds = _COPIES * given.seconds + (_GRACE_ON_SERVER_S if on_server else _GRACE_S)
            arguments = (place, script.setup, script.statements, script.checks, given.as_json())
            patience = 1.0 if on_server else PATIENCE
            return _effects_from_wire(self._processes.call(f"{_EFFECTS}:run_script", arguments, seconds, patience))

        return self._guarded(effects)

    def _ping(self, place: LivePlace) -> None:
        """Raises an UnreachableError if a server does not answer."""
        try:
            self._processes.call(f"{_TASKS}:ping", (place_to_text(place),), _GRACE_ON_SERVER_S, 1.0)
        except SqlError as error:
            raise UnreachableError(f"{place.name} does not answer: {error.message}") from error

    @staticmethod
    def _guarded(run: Callable[[], T]) -> T | Failed:
        try:
            return run()
        except SqlError as error:
            return Failed(error.error_class, error.message)


def patience_with(*databases: object) -> float:
    """Returns how many times as long as its processor time a task may take: a server's time is not its own."""
    return 1.0 if any(isinstance(one, LivePlace) for one in databases) else PATIENCE


def _grace(database: DataPlace) -> float:
    return _GRACE_ON_SERVER_S if isinstance(database, LivePlace) else _GRACE_S


@lru_cache(maxsize=8)
def shared_processes(limits: SqlLimits, preload: tuple[str, ...] = _ENGINES) -> SqlProcesses:
    """Returns children that are kept until this process ends, for callers that cannot close them."""
    processes = SqlProcesses(limits, preload)
    atexit.register(processes.close)
    return processes
