"""Running model-written Python in jails."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.outcomes import Measurement, Outcome, SnippetFailed, SnippetRan
from eval_pipeline.sandbox.packed_tables import NO_TABLES, PackedTables, pack
from eval_pipeline.sandbox.pool import Pool
from eval_pipeline.sandbox.reading import read_outcome, suspicious
from eval_pipeline.sandbox.tiers import ENVIRONMENT, UNSAFE, NoSandboxError, Tier, allowed_tiers
from eval_pipeline.sandbox.zygote_process import ZygoteError

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, "pd.DataFrame | Path"]

_FICKLE = "its result is not the same each time it runs"


class PythonSandbox:
    """Runs snippets of Python with pandas in jails, one a core at a time; an async context manager.

    It belongs to the event loop it is opened in; `BlockingSandbox` serves threads.

    Example:
        async with PythonSandbox() as box:
            outcome = await box.run("result = df.a.sum()", {"df": frame})
    """

    def __init__(
        self, limits: Limits | None = None, *, zygotes: int | None = None, tiers: Sequence[Tier] | None = None
    ) -> None:
        """Starts nothing yet.

        Args:
            limits: of every snippet.
            zygotes: snippets at the same time at most; one a core by default.
            tiers: what may hold them, the best first; by default what `EVAL_SANDBOX` allows.
        """
        self._limits = limits or Limits()
        self._slots = asyncio.Semaphore(zygotes or len(os.sched_getaffinity(0)))
        self._tiers = tiers
        self._tier: Tier | None = None
        self._pool: Pool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def tier(self) -> str:
        """Name of what holds the snippets, as it is stored with attempts; known once the sandbox is open."""
        return self.chosen.name

    @property
    def chosen(self) -> Tier:
        """What holds the snippets. Raises RuntimeError before the sandbox is open."""
        if self._tier is None:
            raise RuntimeError("the sandbox is not open: use it in `async with`")
        return self._tier

    async def __aenter__(self) -> Self:
        """Picks the best tier that really runs a snippet. Raises NoSandboxError where none does."""
        self._loop = asyncio.get_running_loop()
        reasons = []
        for tier in allowed_tiers() if self._tiers is None else self._tiers:
            why_not = tier.why_not() or await self._try(tier)
            if why_not is None:
                return self
            reasons.append(f"{tier.title}: {why_not}")
        raise NoSandboxError(
            f"nothing here can hold model-written code ({'; '.join(reasons)}); `eval-pipeline doctor` says what to do; "
            f"on a machine that may be lost {ENVIRONMENT}={UNSAFE} runs it under resource limits alone"
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        pool, self._pool, self._tier = self._pool, None, None
        if pool is not None:
            await pool.close()

    async def run(self, code: str, tables: Tables | None = None) -> Outcome:
        """Runs a snippet, which finds its tables under their names (`df` too, where there is one) and sets `result`.

        Raises:
            NoSandboxError: no zygote can be started any more.
            RuntimeError: the sandbox is not open, or belongs to another event loop.
            ValueError: a table that is neither a DataFrame nor a Parquet or CSV file, that cannot be read, or has no
                identifier for a name.
        """
        return await self.run_packed(code, pack(tables or {}))

    async def run_packed(self, code: str, tables: PackedTables = NO_TABLES) -> Outcome:
        """As `run`, with tables that are packed once for many snippets."""
        pool = self._open_pool()
        text = code.encode(errors="surrogatepass")
        if len(text) > self._limits.code_bytes:
            message = f"the code takes more than {self._limits.code_bytes:,} bytes"
            return SnippetFailed(ErrorClass.SANDBOX, message, "", 0.0, self.tier)
        async with self._slots:
            try:
                return await self._attempt(pool, text, tables)
            except ZygoteError:
                # Most likely the snippet is not to blame: the system may have killed the zygote for want of memory.
                if self._pool is not pool:
                    raise RuntimeError("the sandbox was closed while the snippet ran") from None
            try:
                return await self._attempt(pool, text, tables)
            except ZygoteError as error:
                return SnippetFailed(ErrorClass.SANDBOX, f"it brought its sandbox down: {error}", "", 0.0, self.tier)

    async def measure(
        self,
        codes: Sequence[str],
        tables: Tables | None = None,
        *,
        repeats: int = 5,
        negligible: Measurement | None = None,
    ) -> list[Measurement | SnippetFailed]:
        """What snippets cost on the same tables, e.g. generated and reference code.

        They run alternately, each time in a fresh process that is forked off a zygote, so that what disturbs one
        disturbs the others, and none can change what is measured of another. Nothing tells a snippet that it is being
        measured: making plain data of its result is part of its costs, as in `run`, and one whose result is not the
        same each time, as that of code that only sometimes does its work, has failed.

        Args:
            codes: the snippets; one that fails is not run again.
            tables: as in `run`.
            repeats: runs of each.
            negligible: stops after the first round in which the best runs of all were below both of its figures:
                spares the other runs where small costs count as equal anyway.

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
                    outcome = await self.run_packed(code, packed)
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

    async def _try(self, tier: Tier) -> str | None:
        """Opens the sandbox with that tier; a sentence where it does not run a snippet."""
        self._tier, self._pool = tier, Pool(tier, self._limits)
        try:
            outcome = await self._attempt(self._pool, b"result = pd.Series([1, 2]).sum()", NO_TABLES)
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

    async def _attempt(self, pool: Pool, code: bytes, tables: PackedTables) -> Outcome:
        """Runs a snippet in some zygote; however that ends, the zygote is given back or given up."""
        zygote = await pool.take(tables.key)
        keep = False
        try:
            try:
                await zygote.load(tables)
            except ValueError:
                keep = True
                raise
            seen, output, left = await zygote.run(code)
            outcome = read_outcome(seen, output, left, self._limits, self.tier)
            keep = seen["clean"] and not suspicious(outcome)
            return outcome
        finally:
            (pool.give_back if keep else pool.give_up)(zygote)


def _below(measured: Measurement, bound: Measurement) -> bool:
    return measured.seconds < bound.seconds and measured.peak_bytes < bound.peak_bytes
