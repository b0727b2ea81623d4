"""The Python sandbox for callers without an event loop; it runs its own event loop in a thread."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.python_sandbox import Assertions, PythonSandbox
from eval_pipeline.sandbox.returned.outcomes import Measurement, Outcome, SnippetFailed

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class OwnLoop:
    """An event loop in a thread of its own, for callers that wait. Several threads may wait at a time."""

    def __init__(self, name: str) -> None:
        """Starts the thread."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs something in the loop and returns what it gives; who is interrupted cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Ends the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingSandbox:
    """A `PythonSandbox` with blocking methods, used as a context manager. Several threads may use it at a time.

    Example:
        with BlockingSandbox() as box:
            outcome = box.run("result = df.a.sum()", {"df": frame})
    """

    def __init__(self, limits: Limits | None = None, *, zygotes: int | None = None) -> None:
        """Opens the sandbox; arguments as for `PythonSandbox`.

        Raises:
            NoSandboxError: nothing on this machine can confine model-written code.
        """
        self._loop = OwnLoop("sandbox")
        self._box = PythonSandbox(limits, zygotes=zygotes)
        try:
            self._loop.wait(self._box.__aenter__())
        except BaseException:
            self._loop.stop()
            raise

    @property
    def tier(self) -> str:
        """Name of the tier that confines the snippets."""
        return self._box.tier

    def run(
        self,
        code: str,
        tables: Mapping[str, "pd.DataFrame | Path"] | None = None,
        *,
        wall_s: float | None = None,
        tests: Assertions | None = None,
        leaves_nothing: bool = False,
    ) -> Outcome:
        """Same as `PythonSandbox.run`."""
        ran = self._box.run(code, tables, wall_s=wall_s, tests=tests, leaves_nothing=leaves_nothing)
        return self._loop.wait(ran)

    def measure(
        self,
        codes: Sequence[str],
        tables: Mapping[str, "pd.DataFrame | Path"] | None = None,
        *,
        repeats: int = 5,
        negligible: Measurement | None = None,
        tests: Assertions | None = None,
    ) -> list[Measurement | SnippetFailed]:
        """Same as `PythonSandbox.measure`."""
        return self._loop.wait(self._box.measure(codes, tables, repeats=repeats, negligible=negligible, tests=tests))

    def close(self) -> None:
        """Ends all processes."""
        self._loop.wait(self._box.__aexit__(None, None, None))
        self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
