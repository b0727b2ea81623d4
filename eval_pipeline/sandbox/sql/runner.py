"""The SQL runner: queries that a model wrote, in child processes that are reused as long as they behave."""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from eval_pipeline.core.model import Failed
from eval_pipeline.sandbox.sql.errors import SqlError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.process import SqlProcess
from eval_pipeline.sandbox.sql.rows import SqlRows

T = TypeVar("T")

_GRACE_S = 1.0
"""How long after its interruption a query may take to stop before its process is killed."""
_MOST_TASKS = 2_000
_TASKS = "eval_pipeline.sandbox.sql.tasks"
_ENGINES = ("duckdb", "eval_pipeline.sandbox.sql.tasks")


class SqlProcesses:
    """Child processes, made when needed and lent to one task at a time. For any number of threads."""

    def __init__(self, limits: SqlLimits, preload: tuple[str, ...] = _ENGINES, most: int | None = None) -> None:
        """Starts none yet.

        Args:
            limits: memory of each.
            preload: modules each imports at its start.
            most: at work at the same time; as many as there are cores by default.
        """
        self._limits, self._preload = limits, preload
        self._places = threading.BoundedSemaphore(most or os.cpu_count() or 1)
        self._lock = threading.Lock()
        self._idle: list[SqlProcess] = []

    def call(self, task: str, arguments: tuple[Any, ...], seconds: float) -> Any:
        """What a task gives, in some child; waiting for one is not counted. As `SqlProcess.call`."""
        with self._places:
            process = self._take()
            try:
                return process.call(task, arguments, seconds)
            finally:
                self._give_back(process)

    def close(self) -> None:
        """Ends the idle children."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.kill()

    def _take(self) -> SqlProcess:
        while True:
            with self._lock:
                process = self._idle.pop() if self._idle else None
            if process is None:
                return SqlProcess(self._limits, self._preload)
            if process.alive:
                return process
            process.kill()

    def _give_back(self, process: SqlProcess) -> None:
        if process.alive and process.served < _MOST_TASKS:
            with self._lock:
                self._idle.append(process)
        else:
            process.kill()


class SqlRunner:
    """Runs queries on database files, read-only and within limits: an asynchronous context manager.

    The engine follows from the file: SQLite or DuckDB.
    """

    def __init__(self, limits: SqlLimits | None = None, most: int | None = None) -> None:
        """Starts nothing yet.

        Args:
            limits: of every query.
            most: queries at the same time; as many as there are cores by default.
        """
        self.limits = limits or SqlLimits()
        self._processes = SqlProcesses(self.limits, most=most)
        self._threads = ThreadPoolExecutor(most or os.cpu_count() or 1, thread_name_prefix="sql")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the child processes."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._processes.close()

    async def run(self, database: Path, sql: str) -> SqlRows | Failed:
        """The rows of a query, or why it did not run."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.run_now, database, sql)

    def run_now(self, database: Path, sql: str) -> SqlRows | Failed:
        """`run` for callers without an event loop."""
        return self._guarded(lambda: self._rows(database, sql))

    def _rows(self, database: Path, sql: str) -> SqlRows:
        arguments = (str(database), sql, self.limits.as_json())
        told = self._processes.call(f"{_TASKS}:run_query", arguments, self.limits.seconds + _GRACE_S)
        rows = [tuple(row) for row in told["rows"]]
        return SqlRows(tuple(told["columns"]), rows, told["seconds"], told["cpu_seconds"])

    def time_pair_now(self, database: Path, first: str, second: str, runs: int = 5) -> tuple[float, float] | Failed:
        """Least CPU seconds of each of two queries, run in turns; or why one did not run. Needs no event loop."""

        def timed() -> tuple[float, float]:
            arguments = (str(database), first, second, runs, self.limits.as_json())
            seconds = 2 * runs * self.limits.seconds + _GRACE_S
            one, other = self._processes.call(f"{_TASKS}:time_alternating", arguments, seconds)
            return one, other

        return self._guarded(timed)

    @staticmethod
    def _guarded(run: Callable[[], T]) -> T | Failed:
        try:
            return run()
        except SqlError as error:
            return Failed(error.error_class, error.message)


@lru_cache(maxsize=8)
def shared_processes(limits: SqlLimits, preload: tuple[str, ...] = _ENGINES) -> SqlProcesses:
    """Children that this process keeps to its end, for callers with nothing to close them."""
    processes = SqlProcesses(limits, preload)
    atexit.register(processes.close)
    return processes
