"""What a run makes of the batches of one that was killed."""

import asyncio
import multiprocessing
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from eval_pipeline.asking.answers import Counters
from eval_pipeline.asking.batches.intents import BatchIntents, Intent, State
from eval_pipeline.asking.batches.sqlite import SqliteBatchTable
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import CallErrorKind, Response
from eval_pipeline.providers.base import CallError
from eval_pipeline_tests.asking.callers import batched, batching, in_batches, texts
from eval_pipeline_tests.asking.journals import Journals, batch_states, change_batches, journal_at
from eval_pipeline_tests.fakes.scripted import make_call
from eval_pipeline_tests.fakes.scripted_batches import BatchedProvider, Endpoint, make_version

GONE = "a-host-that-is-not-this-one 1 1.00"
AGO = timedelta(hours=2)
"""When the run was killed."""


def run(endpoint: Endpoint, journal: Journal, turns: Iterable[int]) -> tuple[Counters, list[str]]:
    caller, answers = in_batches(BatchedProvider(endpoint), journal, turns)
    return caller.counters, texts(answers)


def killed(endpoint: Endpoint, journal: Journal, turns: Iterable[int], *, taken: bool, known: bool) -> Intent:
    """Leaves what a run leaves that is killed after its intent: the endpoint took it, and the run knew the id."""
    intents = BatchIntents(journal.batches, make_version())
    caller = Caller(BatchedProvider(endpoint), journal, make_version())
    calls = {caller.key(make_call(turn)): make_call(turn) for turn in turns}
    intent = intents.claim(calls)
    orphan(journal, intent)
    if taken:
        batch = endpoint.take(calls, AGO)
        if known:
            intents.handed_in(intent.id, batch.id)
    return intent


def orphan(journal: Journal, intent: Intent, owner: str = GONE, age: timedelta = AGO) -> None:
    """Makes the intent one of a process that is gone."""
    at = (datetime.now(UTC) - age).isoformat()
    change_batches(journal, lambda row: {"owner": owner, "created_at": at} if row["intent_id"] == intent.id else {})


@pytest.mark.parametrize(("taken", "known"), [(True, True), (True, False), (False, False)])
def test_a_batch_of_a_killed_run_is_waited_for_or_handed_in_if_it_was_never_taken(
    journal: Journal, taken: bool, known: bool
) -> None:
    endpoint = Endpoint(looks=2)
    # Others of the account's batches have as many requests: if its id is not known, it is found by them.
    endpoint.take({f"other{number}": make_call() for number in range(4)}, AGO)
    killed(endpoint, journal, range(4), taken=taken, known=known)
    endpoint.take({f"another{number}": make_call() for number in range(4)}, AGO)
    counters, told = run(endpoint, journal, range(4))
    assert told == batched(0, 1, 2, 3)
    assert endpoint.sizes() == [4, 4, 4]
    expected = Counters(journal_hits=4) if taken else Counters(calls=4, answered=4, responses=4, tokens=48)
    assert counters == expected
    assert sorted(batch_states(journal)) == ["collected"] + ["lost"] * (not taken)


def test_a_batch_that_is_known_to_another_intent_is_not_taken_for_this_one(journal: Journal) -> None:
    endpoint = Endpoint()
    killed(endpoint, journal, range(4), taken=True, known=True)
    killed(endpoint, journal, range(4, 8), taken=False, known=False)
    assert run(endpoint, journal, range(8))[1] == batched(*range(8))
    assert endpoint.sizes() == [4, 4]


def test_calls_that_no_batch_has_are_handed_in_beside(journal: Journal) -> None:
    endpoint = Endpoint(looks=2)
    killed(endpoint, journal, range(4), taken=True, known=True)
    counters, told = run(endpoint, journal, range(2, 7))
    assert told == batched(2, 3, 4, 5, 6)
    assert sorted(endpoint.sizes()) == [3, 4]
    assert counters == Counters(calls=3, answered=3, responses=3, journal_hits=2, tokens=36)


async def test_who_asks_without_batches_waits_for_one_that_has_the_call_and_asks_the_others_at_once(
    journal: Journal,
) -> None:
    endpoint = Endpoint(looks=2)
    killed(endpoint, journal, range(2), taken=True, known=True)
    calls = [make_call(turn) for turn in range(4)]
    async with batching(BatchedProvider(endpoint), journal) as caller:
        known = caller.known(calls)
        answers = await asyncio.gather(*(caller.without_batches().ask(call) for call in calls))
    known, told, counters = (known, texts(answers), caller.counters)
    assert known == [True, True, False, False]
    assert told[:2] == batched(0, 1)
    assert not any(text.startswith("batched") for text in told[2:])
    assert endpoint.sizes() == [2]
    assert (counters.journal_hits, counters.answered, counters.calls) == (2, 2, 2)


def test_results_that_nobody_waits_for_are_journalled_too(journal: Journal) -> None:
    endpoint = Endpoint()
    killed(endpoint, journal, range(600), taken=True, known=True)
    run(endpoint, journal, [3])
    assert batch_states(journal) == ["collected"]
    assert run(endpoint, journal, range(600))[0] == Counters(journal_hits=600)
    assert endpoint.sizes() == [600]


def test_a_batch_of_which_everything_is_in_the_journal_is_closed(journal: Journal) -> None:
    endpoint = Endpoint()
    run(endpoint, journal, range(3))
    change_batches(journal, lambda _: {"state": "open"})  # killed between the last result and this
    assert run(endpoint, journal, range(3))[0] == Counters(journal_hits=3)
    assert batch_states(journal) == ["collected"]
    assert endpoint.sizes() == [3]


def test_a_run_that_ends_while_it_waits_leaves_the_batch_to_the_next_one(journal: Journal) -> None:
    endpoint = Endpoint(looks=10**9)

    async def ask() -> None:
        async with batching(BatchedProvider(endpoint), journal) as caller:
            asking = [asyncio.create_task(caller.ask(make_call(turn))) for turn in range(4)]
            while not endpoint.looked:
                await asyncio.sleep(0.001)
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    asyncio.run(ask())
    assert batch_states(journal) == ["open"]
    endpoint.held[0].looks_left = 0
    assert run(endpoint, journal, range(4)) == (Counters(journal_hits=4), batched(0, 1, 2, 3))
    assert endpoint.sizes() == [4]


def test_entries_that_failed_are_not_waited_for_again(journal: Journal) -> None:
    expired = CallError(CallErrorKind.TIMEOUT, "expired", retryable=True)
    endpoint = Endpoint(entry=lambda call: Response("fine") if call.turn_index else expired)
    killed(endpoint, journal, range(3), taken=True, known=True)
    assert run(endpoint, journal, range(3)) == (
        Counters(calls=1, answered=1, responses=1, journal_hits=2),
        ["answer", "fine", "fine"],
    )
    assert batch_states(journal) == ["collected"]


def test_no_two_claims_hold_the_same_request(journal: Journal) -> None:
    intents = BatchIntents(journal.batches, make_version())
    first = intents.claim(["a", "b"])
    second = intents.claim(["b", "c"])
    assert first is not None and second is not None
    assert (first.keys, second.keys) == ({"a", "b"}, {"c"})
    assert intents.claim(["a", "c"]) is None
    intents.close(first.id, State.COLLECTED)
    third = intents.claim(["a", "c"])
    assert third is not None and third.keys == {"a"}
    assert [intent.id for intent in intents.open()] == [second.id, third.id]
    # Another account or model has batches of its own.
    assert BatchIntents(journal.batches, make_version(model="other")).open() == []
    assert BatchIntents(journal.batches, make_version(options={"base_url": "http://x"})).open() == []


def _claim(place: tuple[str, int]) -> list[str]:
    where, start = place
    claimed: list[str] = []
    with journal_at(where) as journal:
        intents = BatchIntents(journal.batches, make_version())
        for number in range(20):
            intent = intents.claim([f"k{number}", f"k{number + start}"])
            claimed += intent.keys if intent else ()
    return claimed


def test_claims_of_several_processes_never_overlap(journals: Journals) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        claimed = pool.map(_claim, [(journals.where, start) for start in (5, 10)])
    everything = [key for keys in claimed for key in keys]
    assert len(everything) == len(set(everything)) == 30


def test_an_intent_is_taken_over_from_a_process_that_is_gone_and_from_no_other(journal: Journal) -> None:
    intents = BatchIntents(journal.batches, make_version())
    mine = intents.claim(["a"])
    assert mine is not None and intents.take_over(mine)
    host, pid, started = mine.owner.rsplit(" ", 2)
    for owner, free in [
        (f"{host} 1 1.00", True),  # its number was given to another process
        (f"{host} 4194304 {started}", True),
        (f"elsewhere {pid} {started}", False),
    ]:
        orphan(journal, mine, owner, timedelta(0))
        (found,) = intents.open()
        assert intents.take_over(found) is free
        # The first to take it over has it.
        assert intents.take_over(found) is False
        orphan(journal, mine, owner, timedelta(0))
    orphan(journal, mine, f"elsewhere {pid} {started}", timedelta(hours=2))
    assert intents.take_over(*intents.open())


def test_a_process_that_was_killed_is_gone_though_its_parent_has_not_looked(journal: Journal) -> None:
    intents = BatchIntents(journal.batches, make_version())
    mine = intents.claim(["a"])
    with subprocess.Popen(["sleep", "60"]) as child:
        process = psutil.Process(child.pid)
        orphan(journal, mine, f"{socket.gethostname()} {child.pid} {process.create_time():.2f}", timedelta(0))
        assert not intents.take_over(*intents.open())
        os.kill(child.pid, signal.SIGKILL)
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.001)
        assert intents.take_over(*intents.open())


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match=r"j\.sqlite .*doctor"):
        BatchIntents(SqliteBatchTable(path), make_version()).open()
