"""Running model-written Python: a pool of zygotes in jails."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import ErrorClass
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.outcomes import Failed, Measurement, Outcome, Ran, classify
from eval_pipeline.sandbox.tables import NO_TABLES, PackedTables, pack
from eval_pipeline.sandbox.tiers import ENVIRONMENT, INSTALL, UNSAFE, NoSandboxError, allowed_tiers
from eval_pipeline.sandbox.zygote_process import Zygote, ZygoteError

if TYPE_CHECKING:
    import pandas as pd

_NO_RESULT = "the process ended without a well-formed result"


class PythonSandbox:
    """Runs snippets of Python with pandas in jails, one a core at a time; an async context manager.

    Example:
        async with PythonSandbox() as box:
            outcome = await box.run("result = df.a.sum()", {"df": frame})

    Attributes:
        tier: what holds the snippets; known once it is open.
    """

    tier: str

    def __init__(self, limits: Limits | None = None, *, zygotes: int | None = None) -> None:
        """Starts nothing yet.

        Args:
            limits: of every snippet.
            zygotes: processes at most; one a core by default.
        """
        self._limits = limits or Limits()
        self._most = zygotes or len(os.sched_getaffinity(0))
        self._idle: list[Zygote] = []
        self._ending: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Picks the best tier that really runs a snippet. Raises NoSandboxError where none does."""
        self._slots = asyncio.Semaphore(self._most)
        reasons = []
        for tier in allowed_tiers():
            why_not = tier.why_not()
            if why_not is None:
                self.tier = tier.name
                why_not = await self._try()
            if why_not is None:
                return self
            reasons.append(f"{tier.name}: {why_not}")
        raise NoSandboxError(
            f"nothing here can hold model-written code ({'; '.join(reasons)}); {INSTALL}; "
            f"on a machine that may be lost {ENVIRONMENT}={UNSAFE} runs it under resource limits alone"
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        idle, self._idle = self._idle, []
        await asyncio.gather(*(zygote.stop() for zygote in idle), *self._ending)

    async def run(self, code: str, tables: Mapping[str, "pd.DataFrame | Path"] | None = None) -> Outcome:
        """Runs a snippet, which finds its tables under their names (`df` too, where there is one) and sets `result`.

        Raises:
            NoSandboxError: no zygote can be started any more.
            ValueError: a table that is neither a DataFrame nor a Parquet or CSV file, or has no identifier for a name.
        """
        return await self.run_packed(code, pack(tables or {}))

    async def run_packed(self, code: str, tables: PackedTables = NO_TABLES) -> Outcome:
        """As `run`, with tables that are packed once for many snippets."""
        async with self._slots:
            zygote = await self._zygote()
            keep = False
            try:
                outcome, keep = await self._outcome(zygote, code, tables)
            finally:
                if keep and zygote.snippets < self._limits.snippets_per_zygote:
                    self._idle.append(zygote)
                else:
                    self._retire(zygote)
            return outcome

    async def measure(
        self,
        codes: Sequence[str],
        tables: Mapping[str, "pd.DataFrame | Path"] | None = None,
        *,
        repeats: int = 5,
        negligible: Measurement | None = None,
    ) -> list[Measurement | Failed]:
        """What snippets cost on the same tables, e.g. generated and reference code.

        They run alternately, each time in a fresh process that is forked off the same zygote, so that what disturbs one
        disturbs the others, and none can change what is measured of another. Results are not encoded, stored or sent.

        Args:
            codes: the snippets; one that fails is not run again.
            tables: as in `run`.
            repeats: runs of each.
            negligible: stops after the first round in which the best runs of all were below both of its figures:
                spares the other runs where small costs count as equal anyway.

        Returns:
            For each snippet its least CPU time and least peak memory, or how it failed.

        Raises:
            NoSandboxError, ValueError: as `run`.
        """
        packed = pack(tables or {})
        runs: list[list[Ran]] = [[] for _ in codes]
        failed: dict[int, Failed] = {}
        for _ in range(repeats):
            for place, code in enumerate(codes):
                if place not in failed:
                    outcome = await self.run_packed(code, packed)
                    if isinstance(outcome, Ran):
                        runs[place].append(outcome)
                    else:
                        failed[place] = outcome
            measured = [failed.get(place) or _least(runs[place]) for place in range(len(codes))]
            if negligible and all(isinstance(one, Failed) or _below(one, negligible) for one in measured):
                break
        return measured

    async def _zygote(self) -> Zygote:
        if self._idle:
            return self._idle.pop()
        try:
            return await Zygote.start(self.tier, self._limits)
        except ZygoteError as error:
            raise NoSandboxError(f"the sandbox ({self.tier}) does not start any more: {error}") from error

    def _retire(self, zygote: Zygote) -> None:
        """Ends a zygote without keeping anybody waiting for it."""
        task = asyncio.get_running_loop().create_task(zygote.stop())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _try(self) -> str | None:
        """Why the tier cannot be used; None where it ran a snippet."""
        try:
            zygote = await Zygote.start(self.tier, self._limits)
        except (ZygoteError, OSError) as error:
            return str(error)
        outcome, keep = await self._outcome(zygote, "result = pd.Series([1, 2]).sum()", NO_TABLES)
        if isinstance(outcome, Ran) and keep and outcome.result == {"kind": "value", "value": 3}:
            self._idle.append(zygote)
            return None
        await zygote.stop()
        return outcome.message if isinstance(outcome, Failed) else "a test snippet gave a wrong result"

    async def _outcome(self, zygote: Zygote, code: str, tables: PackedTables) -> tuple[Outcome, bool]:
        """What became of a snippet, and whether its zygote can be used again."""
        try:
            told, output, result = await zygote.run(code, tables)
        except ZygoteError as error:
            return Failed(ErrorClass.SANDBOX, f"the sandbox had to be stopped: {error}", "", 0.0, self.tier), False
        stdout = output.decode(errors="replace")
        outcome = self._read(told, stdout, result)
        violated = isinstance(outcome, Failed) and outcome.exception is None
        violated = violated or (isinstance(outcome, Failed) and outcome.error_class is ErrorClass.SANDBOX)
        return outcome, not violated

    def _read(self, told: Mapping[str, Any], stdout: str, result: bytes) -> Outcome:
        seconds = float(told["seconds"])

        def failed(error_class: ErrorClass, message: str, **more: Any) -> Failed:
            return Failed(error_class, message, stdout, seconds, self.tier, **more)

        limits = self._limits
        match told["stopped"]:
            case "wall":
                return failed(ErrorClass.TIMEOUT, f"no result within {limits.wall_s:g} s")
            case "output":
                return failed(ErrorClass.SANDBOX, f"it printed more than {limits.output_bytes:,} bytes")
            case "result":
                return failed(ErrorClass.VALUE, f"its result takes more than {limits.result_bytes:,} bytes")
        try:
            left = parse_json(result.decode())
        except ValueError:
            left = None
        match left:
            case {"result": {"kind": str()} as value}:
                return Ran(value, stdout, seconds, int(told["peak_bytes"]), self.tier)
            case {"error": {"types": [str() as kind, *_] as types, "message": str() as message, "line": line}}:
                found = classify([str(name) for name in types], message)
                return failed(found, message, exception=kind, line=line if isinstance(line, int) else None)
        status = told["status"]
        if status < 0:
            return failed(*_killed(-status))
        return failed(ErrorClass.SANDBOX, _NO_RESULT)


def _least(runs: Sequence[Ran]) -> Measurement:
    return Measurement(min(run.seconds for run in runs), min(run.peak_bytes for run in runs), len(runs))


def _below(measured: Measurement, bound: Measurement) -> bool:
    return measured.seconds < bound.seconds and measured.peak_bytes < bound.peak_bytes


def _killed(number: int) -> tuple[ErrorClass, str]:
    """Class and sentence for a process that a signal ended."""
    import signal

    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if number == signal.SIGXCPU:
        return ErrorClass.TIMEOUT, "it used more CPU time than allowed"
    if number == signal.SIGKILL:
        return ErrorClass.MEMORY, "the system killed it, most likely for the memory it took"
    if number == signal.SIGXFSZ:
        return ErrorClass.SANDBOX, "it wrote a file that is larger than allowed"
    return ErrorClass.OTHER, f"it crashed the interpreter ({name})"
