import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from eval_pipeline.asking.deadline import DeadlineError, within


def run_within(seconds: float, coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def run() -> Any:
        return await within(asyncio.get_running_loop().time() + seconds, coroutine)

    return asyncio.run(run())


async def several_waits() -> str:
    said = []
    for number in range(3):
        await asyncio.sleep(0.001 * number)
        said.append(await asyncio.to_thread(str, number))
    return "".join(said)


async def at_once(result: Any) -> Any:
    if isinstance(result, Exception):
        raise result
    return result


async def later(result: Any) -> Any:
    await asyncio.sleep(0)
    return await at_once(result)


@pytest.mark.parametrize("coroutine", [at_once("012"), later("012"), several_waits()])
def test_what_is_done_in_time_is_returned(coroutine: Coroutine[Any, Any, Any]) -> None:
    assert run_within(5, coroutine) == "012"


@pytest.mark.parametrize("answer", [at_once, later])
@pytest.mark.parametrize("error", [ValueError("own"), TimeoutError("own")])
def test_the_coroutines_own_errors_come_through(answer: Any, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        run_within(5, answer(error))


def test_the_deadline_cancels_what_still_waits() -> None:
    ended = []

    async def endless() -> None:
        try:
            await asyncio.sleep(0.001)
            await asyncio.sleep(30)
        finally:
            ended.append("cleaned up")

    started = time.monotonic()
    with pytest.raises(DeadlineError):
        run_within(0.02, endless())
    assert time.monotonic() - started < 5
    assert ended == ["cleaned up"]


def test_what_needs_no_waiting_is_done_even_after_the_deadline() -> None:
    assert run_within(-1, at_once("done")) == "done"
    with pytest.raises(DeadlineError):
        run_within(-1, asyncio.sleep(30))


def test_a_coroutine_may_catch_a_cancellation_at_its_first_wait() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            return "saved"
        return "slept"

    async def cancel() -> Any:
        task = asyncio.create_task(within(asyncio.get_running_loop().time() + 20, stubborn()))
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(cancel()) == "saved"


def test_timeouts_inside_work_as_ever() -> None:
    async def own_timeout() -> str:
        try:
            async with asyncio.timeout(0.005):
                await asyncio.sleep(30)
        except TimeoutError:
            return "gave up by itself"
        return "slept"

    assert run_within(5, own_timeout()) == "gave up by itself"
