"""Batches at endpoints that lose replies, forget batches, list them late or cannot be reached at all."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest

from eval_pipeline.asking.answers import Answer
from eval_pipeline.asking.batches.intents import BatchIntents, Intent
from eval_pipeline.asking.batches.queue import BatchQueue
from eval_pipeline.asking.batches.work import BatchWork, Pace
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.core.model import CallErrorKind, CallFailure, Response
from eval_pipeline.providers.base import Batch, Call, CallError
from eval_pipeline_tests.asking.callers import batched, in_batches, open_intents, texts
from eval_pipeline_tests.asking.journals import change_batches
from eval_pipeline_tests.fakes.scripted import make_call
from eval_pipeline_tests.fakes.scripted_batches import BatchedProvider, Endpoint, make_version

QUICK = Pace(linger_s=0.01, first_poll_s=0.001, longest_poll_s=0.005, listed_after_s=0.3)
VERSION = make_version()
EXPECTED = batched(*range(3))


def broken() -> CallError:
    return CallError(CallErrorKind.CONNECTION, "the connection broke", retryable=True)


def run(provider: BatchedProvider, journal: Journal, count: int = 3, pace: Pace = QUICK) -> list[Answer]:
    return in_batches(provider, journal, range(count), pace=pace)[1]


def claimed(provider: BatchedProvider, journal: Journal, count: int = 3, ago: timedelta = timedelta(0)) -> Intent:
    """The intent of a run that was killed that long ago; the endpoint has nothing of it yet."""
    caller = Caller(provider, journal, VERSION)
    intent = BatchIntents(journal.batches, VERSION).claim([caller.key(make_call(turn)) for turn in range(count)])
    change_batches(journal, lambda _: {"created_at": (datetime.now(UTC) - ago).isoformat()})
    return replace(intent, created_at=datetime.now(UTC) - ago)


def take(endpoint: Endpoint, keys: frozenset[str], ago: timedelta = timedelta(0)) -> str:
    return endpoint.take({key: make_call() for key in keys}, ago).id


class LateList(BatchedProvider):
    """Lists a batch 0.15 s after it was taken."""

    async def batches(self, since: datetime) -> AsyncIterator[Batch]:
        async for batch in super().batches(since):
            if datetime.now(UTC) - batch.created_at > timedelta(seconds=0.15):
                yield batch


@pytest.mark.parametrize("lost", [1, 2])
def test_a_batch_that_is_listed_late_is_not_handed_in_again(journal: Journal, lost: int) -> None:
    # The first try fails and takes as long as it takes to be sure of that; then the reply to the second is lost.
    endpoint = Endpoint(refuse=[broken()] * (lost - 1), lose_reply=[broken()])
    assert texts(run(LateList(endpoint), journal)) == EXPECTED
    assert endpoint.sizes() == [3]


def test_a_batch_of_a_killed_run_may_be_listed_late(journal: Journal) -> None:
    provider = LateList(Endpoint())
    intent = claimed(provider, journal, ago=timedelta(minutes=10))
    take(provider.endpoint, intent.keys)  # the endpoint has just worked off what the killed run had sent
    run(provider, journal)
    assert provider.endpoint.sizes() == [3]


def test_a_batch_that_was_just_taken_and_is_not_known_is_left_to_the_next_run(journal: Journal) -> None:
    class Forgetful(BatchedProvider):
        async def batch(self, batch_id: str) -> Batch | None:
            return None

    endpoint = Endpoint()
    answers = run(Forgetful(endpoint), journal)
    assert {type(answer) for answer in answers} == {CallFailure}
    assert "took the batch batch-0 and does not know it" in getattr(answers[0], "message", "")
    assert endpoint.sizes() == [3]
    # The next run hands it in once more, and not again.
    assert texts(run(Forgetful(endpoint), journal)) == ["bad_response"] * 3
    assert endpoint.sizes() == [3, 3]
    # The endpoint knows it after all.
    assert texts(run(BatchedProvider(endpoint), journal)) == EXPECTED
    assert endpoint.sizes() == [3, 3]


def test_a_batch_that_the_endpoint_knows_a_little_later_is_waited_for(journal: Journal) -> None:
    class Late(BatchedProvider):
        async def batch(self, batch_id: str) -> Batch | None:
            known = datetime.now(UTC) - self.endpoint.held[0].created_at > timedelta(seconds=0.1)
            return await super().batch(batch_id) if known else None

    endpoint = Endpoint()
    assert texts(run(Late(endpoint), journal)) == EXPECTED
    assert endpoint.sizes() == [3]


class Unreachable(BatchedProvider):
    """Nobody is there."""

    async def submit_batch(self, calls: Mapping[str, Call]) -> Batch:
        raise broken()

    async def batches(self, since: datetime) -> AsyncIterator[Batch]:
        raise broken()
        yield

    async def batch_results(self, batch_id: str) -> AsyncGenerator[tuple[str, Response | CallError], None]:
        raise broken()
        yield


class Shaky(BatchedProvider):
    """Some of the looks at a batch fail."""

    def __init__(self, endpoint: Endpoint, fails: Callable[[int], bool]) -> None:
        super().__init__(endpoint)
        self.fails, self.looks = fails, 0

    async def batch(self, batch_id: str) -> Batch | None:
        self.looks += 1
        if self.fails(self.looks):
            raise broken()
        return await super().batch(batch_id)


@pytest.mark.parametrize("killed", [False, True])
def test_an_endpoint_that_cannot_be_reached_is_given_up_after_the_patience_for_one(
    journal: Journal, killed: bool
) -> None:
    provider = Unreachable(Endpoint())
    if killed:
        claimed(provider, journal)
    answers = run(provider, journal, pace=replace(QUICK, patience_s=0.2, deadline_s=1000))
    assert answers == [CallFailure(CallErrorKind.CONNECTION, "the connection broke")] * 3
    # Whether it took the batch is not known: it is looked for.
    assert open_intents(journal) == 1


def test_an_endpoint_that_fails_again_and_again_is_told_of_once(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    assert texts(run(Shaky(Endpoint(looks=0), lambda look: look % 9 != 0), journal)) == EXPECTED
    (message,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert message.startswith("batches: the endpoint failed 3 times in a row (the connection broke); it is asked again")


def test_what_was_never_sent_is_handed_in_again_without_looking_for_it(journal: Journal) -> None:
    class Unlisted(BatchedProvider):
        async def batches(self, since: datetime) -> AsyncIterator[Batch]:
            raise AssertionError("nobody took it")
            yield

    away = CallError(CallErrorKind.CONNECTION, "nobody listens", retryable=True, sent=False)
    endpoint = Endpoint(refuse=[away, away])
    assert texts(run(Unlisted(endpoint), journal)) == EXPECTED
    assert endpoint.sizes() == [3]


def test_results_that_cannot_be_read_are_given_up_after_the_patience_for_them(journal: Journal) -> None:
    class Garbled(BatchedProvider):
        async def batch_results(self, batch_id: str) -> AsyncGenerator[tuple[str, Response | CallError], None]:
            async for result in super().batch_results(batch_id):
                yield result
                break
            raise CallError(CallErrorKind.BAD_RESPONSE, "no JSON", retryable=True)

    endpoint = Endpoint()
    pace = replace(QUICK, patience_s=0.2)  # the deadline is 25 hours
    told = texts(run(Garbled(endpoint), journal, pace=pace))
    assert sorted(told) == ["bad_response", "bad_response", EXPECTED[0]]
    # What could be read is kept, and the rest is neither lost nor handed in again.
    assert texts(run(BatchedProvider(endpoint), journal)) == EXPECTED
    assert endpoint.sizes() == [3]


def test_whatever_ends_a_batch_ends_those_who_wait_for_it(journal: Journal) -> None:
    class Interrupted(BaseException):
        """As Dagster's: no Exception."""

    class Broken(BatchedProvider):
        async def submit_batch(self, calls: Mapping[str, Call]) -> Batch:
            raise Interrupted

    with pytest.raises(Interrupted):
        run(Broken(Endpoint()), journal)


def test_closing_waits_for_results_that_keep_failing_a_while_only(journal: Journal) -> None:
    provider = Unreachable(Endpoint(looks=0))
    intent = claimed(provider, journal)
    BatchIntents(journal.batches, VERSION).handed_in(intent.id, take(provider.endpoint, intent.keys))

    async def interrupted() -> None:
        queue = BatchQueue(provider, journal, VERSION, pace=replace(QUICK, close_s=0.1))
        asking = asyncio.create_task(Caller(provider, journal, VERSION, batches=queue).ask(make_call()))
        while not queue._collecting:
            await asyncio.sleep(0.001)
        asking.cancel()
        await queue.close()

    asyncio.run(asyncio.wait_for(interrupted(), 20))
    assert open_intents(journal) == 1


def test_a_batch_of_days_ago_is_collected_though_the_first_look_fails(journal: Journal) -> None:
    provider = Shaky(Endpoint(looks=0, break_results=[1]), lambda look: look == 1)
    intent = claimed(provider, journal, ago=timedelta(days=3))
    BatchIntents(journal.batches, VERSION).handed_in(intent.id, take(provider.endpoint, intent.keys, timedelta(days=3)))
    assert "connection" not in texts(run(provider, journal))
    assert provider.endpoint.sizes() == [3]


def find(provider: BatchedProvider, journal: Journal, intent: Intent, pace: Pace = QUICK) -> str | None:
    work = BatchWork(provider, journal, BatchIntents(journal.batches, VERSION), pace)
    return asyncio.run(asyncio.wait_for(work.find(intent), 20))


STRANGE = frozenset({"a", "b", "c"})


@pytest.mark.parametrize(("looks", "strangers"), [(0, True), (5, False)])
def test_batches_that_have_ended_are_looked_at_first_and_one_under_way_is_waited_for(
    journal: Journal, looks: int, strangers: bool
) -> None:
    provider = BatchedProvider(endpoint := Endpoint(looks=looks))
    intent = claimed(provider, journal)
    mine = take(endpoint, intent.keys)
    if strangers:
        endpoint.looks = 10**9
        take(endpoint, STRANGE)  # the newest is listed first, and will not end
    pace = QUICK if strangers else replace(QUICK, listed_after_s=0.0)
    assert find(provider, journal, intent, pace) == mine


def test_one_that_does_not_end_in_time_is_left_to_the_next_run(journal: Journal) -> None:
    provider = BatchedProvider(Endpoint(looks=10**9))
    intent = claimed(provider, journal)
    stranger = take(provider.endpoint, STRANGE)
    with pytest.raises(CallError, match=f"{stranger} may be a batch that is looked for") as told:
        find(provider, journal, intent, replace(QUICK, deadline_s=0.2))
    assert told.value.kind is CallErrorKind.TIMEOUT


def test_batches_made_when_the_killed_run_was_long_gone_are_not_waited_for(journal: Journal) -> None:
    provider = BatchedProvider(Endpoint(looks=10**9))
    intent = claimed(provider, journal, ago=timedelta(hours=2))
    take(provider.endpoint, STRANGE)
    assert find(provider, journal, intent) is None


def test_results_that_are_another_batchs_are_closed_at_once(journal: Journal) -> None:
    closed: list[str] = []

    class Watched(BatchedProvider):
        async def batch_results(self, batch_id: str) -> AsyncGenerator[tuple[str, Response | CallError], None]:
            try:
                async for result in super().batch_results(batch_id):
                    yield result
            finally:
                closed.append(batch_id)

    async def look() -> list[str]:
        await BatchWork(provider, journal, BatchIntents(journal.batches, VERSION), QUICK)._holds(intent, batch)
        return list(closed)

    provider = Watched(Endpoint())
    intent = claimed(provider, journal)
    batch = Batch(take(provider.endpoint, STRANGE), 3, datetime.now(UTC), True)
    assert asyncio.run(look()) == [batch.id]


async def test_a_busy_journal_does_not_keep_the_event_loop_from_its_work(journal: Journal) -> None:
    provider, ticks = BatchedProvider(Endpoint()), 0
    queue = BatchQueue(provider, journal, VERSION, pace=QUICK)
    asking = None
    with ThreadPoolExecutor() as threads:
        held, free = Event(), Event()
        other = threads.submit(journal.batches.write, lambda rows: (held.set(), free.wait(10)))
        held.wait(10)
        asking = asyncio.create_task(queue.ask("key", make_call()))
        for _ in range(20):
            await asyncio.sleep(0.005)
            ticks += 1
        assert not provider.endpoint.held  # it waits for its turn to write
        free.set()
        other.result()
    assert isinstance(await asking, Response)
    await queue.close()
    assert ticks == 20
