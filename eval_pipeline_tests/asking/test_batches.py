import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

from eval_pipeline.asking.answers import Answer, Answered, Counters
from eval_pipeline.asking.batches.intents import BatchIntents
from eval_pipeline.asking.batches.queue import BatchQueue
from eval_pipeline.asking.batches.work import Pace
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.codec import encode_response
from eval_pipeline.asking.journal.port import Journal
from eval_pipeline.core.model import CallErrorKind, CallFailure, Response, Usage
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline_tests.asking.callers import batched, batching, in_batches, open_intents, texts
from eval_pipeline_tests.fakes.scripted import ScriptedProvider, make_call
from eval_pipeline_tests.fakes.scripted_batches import QUICK, BatchedProvider, Endpoint, make_version, turns

BROKEN = CallError(CallErrorKind.CONNECTION, "the connection broke", retryable=True)
LATER = CallError(CallErrorKind.RATE_LIMITED, "later", retryable=True)


EXPECTED = batched(*range(5))


def run(endpoint: Endpoint, journal: Journal, count: int = 5, **more: Any) -> tuple[Caller, list[Answer]]:
    return in_batches(BatchedProvider(endpoint), journal, range(count), **more)


def test_calls_made_at_once_are_one_batch_and_journalled(journal: Journal) -> None:
    endpoint = Endpoint(looks=3)
    caller, answers = run(endpoint, journal)
    assert texts(answers) == EXPECTED
    assert endpoint.sizes() == [5]
    assert endpoint.looked == 4
    assert caller.counters == Counters(calls=5, answered=5, responses=5, tokens=60)
    assert all(isinstance(a, Answered) and a.response.batch and a.response.asked_on for a in answers)
    assert open_intents(journal) == 0
    again, answers = run(endpoint, journal)
    assert again.counters == Counters(journal_hits=5)
    assert endpoint.sizes() == [5]


def test_custom_ids_are_the_journals_keys(journal: Journal) -> None:
    endpoint = Endpoint()
    caller, _ = run(endpoint, journal)
    assert list(endpoint.held[0].calls) == [caller.key(make_call(turn)) for turn in range(5)]


@pytest.mark.parametrize("limit", [("max_batch_requests", 2), ("max_batch_bytes", 2 * 300)])
def test_a_full_batch_is_handed_in_at_once_and_the_rest_in_another(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
) -> None:
    monkeypatch.setattr(BatchedProvider, *limit)  # a request has 128 and some hundred bytes
    endpoint = Endpoint()
    assert texts(run(endpoint, journal)[1]) == EXPECTED
    assert sorted(endpoint.sizes()) == [1, 2, 2]


@pytest.mark.parametrize(("count", "pause"), [(7, 0.0), (300, 0.001)])
async def test_calls_that_follow_from_answers_are_batched_in_rounds(journal: Journal, count: int, pause: float) -> None:
    # 300 results come in two groups, further apart than is waited for new calls.
    endpoint = Endpoint(result_pause_s=pause)

    async def conversation(caller: Caller, name: str) -> None:
        for turn in range(3):
            await caller.ask(make_call(turn, case=name))

    async with batching(BatchedProvider(endpoint), journal) as caller:
        await asyncio.gather(*(conversation(caller, f"c{number}") for number in range(count)))
    assert endpoint.sizes() == [count] * 3


@pytest.mark.parametrize("kind", [CallErrorKind.TIMEOUT, CallErrorKind.CONNECTION, CallErrorKind.BAD_REQUEST, None])
def test_entries_that_expired_failed_or_are_missing_are_asked_again_singly(
    journal: Journal, kind: CallErrorKind | None
) -> None:
    def entry(call: Any) -> Response | CallError | None:
        return (CallError(kind, "expired") if kind else None) if call.turn_index in {1, 3} else Response("fine")

    provider = BatchedProvider(Endpoint(entry=entry))
    _, answers = in_batches(provider, journal, range(5))
    assert texts(answers) == ["fine", "answer", "fine", "answer", "fine"]
    assert turns(provider.asked) == [1, 3]
    assert [answer.response.batch for answer in answers] == [True, False, True, False, True]


async def test_an_answer_that_came_into_the_journal_meanwhile_is_the_one(journal: Journal) -> None:
    queue = BatchQueue(BatchedProvider(Endpoint(entry=lambda call: None)), journal, make_version(), pace=QUICK)
    await journal.append("key", encode_response(Response("theirs")))
    told = await queue.ask("key", make_call())
    await queue.close()
    assert told == Response("theirs")


def test_a_refusal_that_passes_is_tried_again(journal: Journal) -> None:
    endpoint = Endpoint(refuse=[LATER, BROKEN, LATER])
    assert texts(run(endpoint, journal)[1]) == EXPECTED
    assert endpoint.sizes() == [5]


def test_a_refusal_for_good_is_told_to_every_call(journal: Journal) -> None:
    endpoint = Endpoint(refuse=[CallError(CallErrorKind.BAD_REQUEST, "no batches for this model")])
    _, answers = run(endpoint, journal)
    assert answers == [CallFailure(CallErrorKind.BAD_REQUEST, "no batches for this model")] * 5
    assert open_intents(journal) == 0


def test_a_fatal_error_ends_the_run(journal: Journal) -> None:
    with pytest.raises(FatalCallError, match="the key is wrong"):
        run(Endpoint(refuse=[FatalCallError("the key is wrong")]), journal)
    assert open_intents(journal) == 0


def test_results_that_break_off_are_read_again(journal: Journal) -> None:
    endpoint = Endpoint(break_results=[3, 1])
    caller, answers = run(endpoint, journal)
    assert texts(answers) == EXPECTED
    assert caller.counters == Counters(calls=5, answered=5, responses=5, tokens=60)


def test_a_batch_that_takes_too_long_is_left_for_the_next_run(journal: Journal) -> None:
    endpoint = Endpoint(looks=10**9)
    _, answers = run(endpoint, journal, pace=Pace(linger_s=0.01, first_poll_s=0.001, deadline_s=0.1))
    assert [a.kind for a in answers if isinstance(a, CallFailure)] == [CallErrorKind.TIMEOUT] * 5
    assert open_intents(journal) == 1
    endpoint.held[0].looks_left = 0
    caller, answers = run(endpoint, journal)
    assert texts(answers) == EXPECTED
    assert endpoint.sizes() == [5]
    assert caller.counters == Counters(journal_hits=5)


def test_a_batch_that_the_endpoint_has_forgotten_is_handed_in_anew(journal: Journal) -> None:
    endpoint = Endpoint()
    intents = BatchIntents(journal.batches, make_version())
    caller = Caller(ScriptedProvider(), journal, make_version())
    intent = intents.claim([caller.key(make_call(turn)) for turn in range(5)])
    gone = endpoint.take({key: make_call() for key in intent.keys})
    gone.known = False
    intents.handed_in(intent.id, gone.id)
    assert texts(run(endpoint, journal)[1]) == EXPECTED
    assert endpoint.sizes() == [5, 5]
    assert open_intents(journal) == 0


@pytest.mark.parametrize("slow", [timedelta(0), timedelta(minutes=50)])
def test_a_batch_that_was_taken_though_the_reply_was_lost_is_not_handed_in_again(
    journal: Journal, slow: timedelta
) -> None:
    endpoint = Endpoint(lose_reply=[BROKEN], skew=-slow)
    assert texts(run(endpoint, journal)[1]) == EXPECTED
    assert endpoint.sizes() == [5]


def test_equal_calls_share_one_request(journal: Journal) -> None:
    endpoint = Endpoint()

    _, answers = in_batches(BatchedProvider(endpoint), journal, [0] * 4)
    assert len(set(texts(answers))) == 1
    assert endpoint.sizes() == [1]


def test_a_budget_holds_for_batches(journal: Journal) -> None:
    endpoint = Endpoint(entry=lambda call: Response("ok", usage=Usage(700, 50)))
    _, answers = run(endpoint, journal, max_tokens=100, max_tokens_total=2600)
    # About 700 are reserved a call: three go, then 350 are left, which is too little.
    assert endpoint.sizes() == [3]
    assert texts(answers) == ["ok"] * 3 + ["budget"] * 2


def test_a_provider_without_batches_is_refused(journal: Journal) -> None:
    with pytest.raises(TypeError, match="'scripted' has no batches"):
        BatchQueue(ScriptedProvider(), journal, make_version())


@pytest.mark.parametrize("lost", [False, True])
def test_what_is_waited_for_is_told(journal: Journal, lost: bool) -> None:
    told: list[tuple[str, str]] = []

    class Watch:
        def waiting(self, what: str) -> None:
            told.append(("waiting", re.sub("[0-9a-f]{8}", "…", what)))

        def over(self, what: str) -> None:
            told.append(("over", re.sub("[0-9a-f]{8}", "…", what)))

    run(Endpoint(lose_reply=[BROKEN] * lost), journal, 1, watch=Watch())
    looking = "looking whether the endpoint has batch … (1 requests)"
    waiting = "waiting for batch batch-0 (1 requests)"
    shown = [looking] * lost + [waiting]
    assert told == [(state, what) for what in shown for state in ("waiting", "over")]
