"""Runs model-written Python in jails."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.core.system.processors import processors
from eval_pipeline.core.system.stopped import note_stopped
from eval_pipeline.sandbox.jail import has_pandas
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.pool import Pool
from eval_pipeline.sandbox.returned.outcomes import Measurement, Outcome, SnippetFailed, SnippetRan
from eval_pipeline.sandbox.returned.packed_tables import NO_TABLES, PackedTables, pack
from eval_pipeline.sandbox.returned.reading import read_outcome, suspicious
from eval_pipeline.sandbox.tiers import ENVIRONMENT, UNSAFE, NoSandboxError, Tier, allowed_tiers
from eval_pipeline.sandbox.zygote_process import ZygoteError

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, "pd.DataFrame | Path"]


@dataclass(frozen=True, slots=True)
class Assertions:
    """Code that decides whether a snippet is right.

    Attributes:
        code: code that raises if the snippet is wrong.
        reference: a program that passes; the tests may use its imports and classes.
        answer: text that the tests get as `answer_text`, which the code itself cannot change; None for none.
    """

    code: str
    reference: str
    answer: str | None = None

    @property
    def packed(self) -> bytes:
        """Returns all of it in the form that a zygote reads."""
        told = {"tests": self.code, "reference": self.reference, "answer": self.answer}
        return json_text(told).encode(errors="surrogatepass")


_OF_LIMITS = (ErrorClass.TIMEOUT, ErrorClass.MEMORY, ErrorClass.SANDBOX)
"""Classes of errors that may be the machine's fault."""
_FICKLE = "its result is not the same each time it runs"


class PythonSandbox:
    """Runs snippets of Python with pandas in jails, one per core at a time; an async context manager.

    It belongs to the event loop in which it is opened; threads use `BlockingSandbox`.

    Example:
        async with PythonSandbox() as box:
            outcome = await box.run("result = df.a.sum()", {"df": frame})
    """

    def __init__(
        self, limits: Limits | None = None, *, zygotes: int | None = None, tiers: Sequence[Tier] | None = None
    ) -> None:
        """Starts nothing yet.

        Args:
            limits: limits of every snippet.
            zygotes: maximum number of snippets at the same time; default: one per core.
            tiers: the tiers that may be used, best first; default: what `EVAL_SANDBOX` allows.
        """
        self._limits = limits or Limits()
        self._slots = asyncio.Semaphore(zygotes or processors())
        self._tiers = tiers
        self._tier: Tier | None = None
        self._pool: Pool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def tier(self) -> str:
        """Name of the tier that confines the snippets, as stored with attempts; known once the sandbox is open."""
        return self.chosen.name

    @property
    def chosen(self) -> Tier:
        """The tier that confines the snippets. Raises a RuntimeError before the sandbox is open."""
        if self._tier is None:
            raise RuntimeError("the sandbox is not open: use it in `async with`")
        return self._tier

    async def __aenter__(self) -> Self:
        """Selects the best tier that can run a snippet. Raises a NoSandboxError if there is none."""
        self._loop = asyncio.get_running_loop()
        reasons = []
        for tier in allowed_tiers() if self._tiers is None else self._tiers:
            why_not = tier.why_not() or self._why_no_pandas(tier) or await self._try(tier)
            if why_not is None:
                return self
            reasons.append(f"{tier.title}: {why_not}")
        raise NoSandboxError(
            f"nothing on this machine can confine model-written code ({'; '.join(reasons)}); "
            "`eval-pipeline doctor` says what to do; "
            f"on a disposable machine, {ENVIRONMENT}={UNSAFE} runs it with resource limits only"
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        pool, self._pool, self._tier = self._pool, None, None
        if pool is not None:
            await pool.close()

    async def run(
        self,
        code: str,
        tables: Tables | None = None,
        *,
        wall_s: float | None = None,
        tests: Assertions | None = None,
        leaves_nothing: bool = False,
    ) -> Outcome:
        """Runs a snippet; it reads its tables by name (a single one also as `df`) and sets `result`.

        Args:
            code: what a model wrote, or a suite's own code.
            tables: the tables by name.
            wall_s: time limit in seconds; default: that of the limits. A suite's own code gets more, so that it does
                not fail on a busy machine.
            tests: run in a separate process, which gets the names of the code from the code's process
                (docs/sandbox.md). The outcome is that of the tests, with the value `true` if they pass; the code need
                not set `result`.
            leaves_nothing: whether this is trusted code, with nothing of a model's in it, that is known to change
                nothing that outlives it. Where snippets have namespaces of their own, and no packages of a suite, it
                then runs in a process that is kept for such code only, which is faster; code that fails there runs
                again in a process of its own, unless it took too long.

        Raises:
            NoSandboxError: no further zygote can be started.
            RuntimeError: the sandbox is not open, or belongs to another event loop.
            ValueError: a table is neither a DataFrame nor a Parquet or CSV file, cannot be read, or its name is not
            an identifier.
        """
        packed = pack(tables or {})
        if leaves_nothing and self.chosen.separate and tests is None and not self._limits.packages:
            outcome = await self._ran(code, packed, wall_s, None, kept=True)
            if isinstance(outcome, SnippetRan) or outcome.error_class is ErrorClass.TIMEOUT:
                return _noted(outcome)
        return await self.run_packed(code, packed, wall_s=wall_s, tests=tests)

    async def run_packed(
        self,
        code: str,
        tables: PackedTables = NO_TABLES,
        *,
        wall_s: float | None = None,
        tests: Assertions | None = None,
    ) -> Outcome:
        """Same as `run`, with tables that are packed once for many snippets."""
        return _noted(await self._ran(code, tables, wall_s, tests))

    async def _ran(
        self,
        code: str,
        tables: PackedTables,
        wall_s: float | None,
        tests: Assertions | None,
        *,
        kept: bool = False,
    ) -> Outcome:
        pool = self._open_pool()
        text = code.encode(errors="surrogatepass")
        if tests is not None and len(tests.packed) > self._limits.code_bytes:
            raise ValueError(f"tests and reference code take more than {self._limits.code_bytes:,} bytes")
        if len(text) > self._limits.code_bytes:
            message = f"the code takes more than {self._limits.code_bytes:,} bytes"
            return SnippetFailed(ErrorClass.SANDBOX, message, "", 0.0, self.tier)
        limits = self._limits if wall_s is None else replace(self._limits, wall_s=wall_s)
        async with self._slots:
            try:
                return await self._attempt(pool, text, tables, limits, tests, kept=kept)
            except ZygoteError:
                # The snippet is probably not to blame: the system may have killed the zygote because memory was short.
                if self._pool is not pool:
                    raise RuntimeError("the sandbox was closed while the snippet ran") from None
            try:
                return await self._attempt(pool, text, tables, limits, tests, kept=kept)
            except ZygoteError as error:
                return SnippetFailed(ErrorClass.SANDBOX, f"it brought its sandbox down: {error}", "", 0.0, self.tier)

    async def measure(
        self,
        codes: Sequence[str],
        tables: Tables | None = None,
        *,
        repeats: int = 5,
        negligible: Measurement | None = None,
        tests: Assertions | None = None,
    ) -> list[Measurement | SnippetFailed]:
        """Measures snippets on the same tables, e.g. generated and reference code.

        They run alternately, each time in a fresh process forked from a zygote, so that disturbances affect all of
        them alike and no snippet can change the measurement of another. A snippet cannot tell that it is being
        measured: the cost of converting its result to plain data is included, as in `run`. A snippet whose result
        differs between runs has failed, since its code may do its work only sometimes.

        Args:
            codes: the snippets; one that fails is not run again.
            tables: as in `run`.
            repeats: runs of each.
            negligible: CPU time and memory that count as equal. Measuring stops after the first round in which the
                best runs of all snippets were below both.
            tests: as in `run`; the costs are those of the code's process.

        Returns:
            For each snippet its least CPU time and least peak memory, or how it failed.

        Raises:
            NoSandboxError, RuntimeError, ValueError: as `run`.
        """
        packed = pack(tables or {})
        results: dict[int, Json] = {}
        runs: list[list[Measurement]] = [[] for _ in codes]
        failed: dict[int, SnippetFailed] = {}
        measured: list[Measurement | SnippetFailed] = []
        for _ in range(repeats):
            for place, code in enumerate(codes):
                if place not in failed:
                    outcome = await self.run_packed(code, packed, tests=tests)
                    if isinstance(outcome, SnippetFailed):
                        failed[place] = outcome
                    elif outcome.result != results.setdefault(place, outcome.result):
                        failed[place] = SnippetFailed(
                            ErrorClass.VALUE, _FICKLE, outcome.stdout, outcome.seconds, self.tier
                        )
                    else:
                        runs[place].append(Measurement(outcome.seconds, outcome.peak_bytes, 1, outcome.result_bytes))
            measured = [failed.get(place) or Measurement.least(runs[place]) for place in range(len(codes))]
            if negligible and all(isinstance(one, SnippetFailed) or _below(one, negligible) for one in measured):
                break
        return measured

    def _open_pool(self) -> Pool:
        if self._pool is None:
            raise RuntimeError("the sandbox is not open: use it in `async with`")
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("the sandbox belongs to another event loop: open one in each, or a BlockingSandbox")
        return self._pool

    def _why_no_pandas(self, tier: Tier) -> str | None:
        """Returns why a tier cannot have a layer's own pandas: it is imported before a snippet is confined."""
        if tier.separate or not self._limits.packages or not has_pandas(self._limits.packages):
            return None
        return "it does not confine what imports a suite's own pandas, only snippets"

    async def _try(self, tier: Tier) -> str | None:
        """Opens the sandbox with a tier; returns a sentence if the tier cannot run a snippet."""
        self._tier, self._pool = tier, Pool(tier, self._limits)
        try:
            outcome = await self._attempt(self._pool, b"result = pd.Series([1, 2]).sum()", NO_TABLES, self._limits)
            if isinstance(outcome, SnippetRan) and outcome.result == {"kind": "value", "value": 3}:
                return None
            why_not = outcome.message if isinstance(outcome, SnippetFailed) else "a test snippet gave a wrong result"
        except (ZygoteError, NoSandboxError) as error:
            why_not = str(error.__cause__ or error)
        except BaseException:
            await self._close()
            raise
        await self._close()
        return why_not

    async def _attempt(
        self,
        pool: Pool,
        code: bytes,
        tables: PackedTables,
        limits: Limits,
        tests: Assertions | None = None,
        *,
        kept: bool = False,
    ) -> Outcome:
        """Runs a snippet in some zygote; afterwards the zygote is always either returned to the pool or ended."""
        zygote = await pool.take(tables.key)
        keep = trusted = False
        try:
            try:
                await zygote.load(tables)
            except ValueError:
                keep = trusted = True
                raise
            told = None if tests is None else tests.packed
            seen, output, left = await zygote.run(code, limits.wall_s, told, kept=kept)
            outcome = read_outcome(seen, output, left, limits, self.tier)
            keep, trusted = seen["clean"], self.chosen.separate or not suspicious(outcome)
            return outcome
        finally:
            if keep:
                pool.give_back(zygote, trusted=trusted)
            else:
                pool.give_up(zygote)


def _noted(outcome: Outcome) -> Outcome:
    """Returns an outcome, and notes if it may be the machine's fault."""
    if isinstance(outcome, SnippetFailed) and outcome.error_class in _OF_LIMITS:
        note_stopped()
    return outcome


def _below(measured: Measurement, bound: Measurement) -> bool:
    return measured.seconds < bound.seconds and measured.peak_bytes < bound.peak_bytes
