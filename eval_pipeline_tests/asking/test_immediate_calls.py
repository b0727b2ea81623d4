import asyncio
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.asking.answers import Answer, Answered, Counters
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.immediate_calls import ImmediateCaller
from eval_pipeline.asking.journal.codec import encode_response
from eval_pipeline.asking.journal.rows import Row
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import CallErrorKind, CallFailure, Json, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers import registry
from eval_pipeline.providers.base import Call, CallError, FatalCallError
from eval_pipeline.providers.standins.inprocess import Immediate
from eval_pipeline_tests.asking.callers import texts
from eval_pipeline_tests.fakes.scripted import make_call

VERSION = ModelVersion(name="v", provider="prompt", model="m")


class Answering(Immediate):
    """Answers by the turn's index; `failing` says what some raise, each time or as often as it has entries."""

    simulated: ClassVar[bool] = True
    recorded: ClassVar[bool] = False

    def __init__(self, failing: Mapping[int, Sequence[Exception]] | None = None, *, always: bool = False) -> None:
        self.asked: list[int] = []
        self._failing = {turn: list(errors) for turn, errors in (failing or {}).items()}
        self._always = always

    def request(self, call: Call) -> Json:
        return {"turn": call.turn_index}

    def answer(self, call: Call) -> Response:
        self.asked.append(call.turn_index)
        errors = self._failing.get(call.turn_index)
        if errors:
            raise errors[0] if self._always else errors.pop(0)
        return Response(f"answer {call.turn_index}", usage=Usage(10, call.turn_index), asked_on="2026-01-02")


@pytest.fixture(autouse=True)
def known_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PROVIDERS, VERSION.provider, Answering)


def ask(caller: Caller, turns: Sequence[int], size: int | None = None) -> list[Answer]:
    """The answers, asked for in groups."""
    calls = [make_call(turn) for turn in turns]
    size = size or len(calls)

    async def all_of_them() -> list[Answer]:
        groups = [calls[start : start + size] for start in range(0, len(calls), size)]
        return [answer for group in groups for answer in await caller.ask_many(group)]

    return asyncio.run(all_of_them())


def bodies(journal: SqliteJournal, caller: Caller, turns: Sequence[int]) -> list[bytes | None]:
    return [journal.get(caller.key(make_call(turn))) for turn in turns]


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=30),
    st.sets(st.integers(0, 9)),
    st.sets(st.integers(0, 9)),
    st.integers(1, 12),
)
def test_asking_together_gives_what_asking_one_by_one_gives(
    turns: list[int], known: set[int], refused: set[int], size: int
) -> None:
    failing = {turn: [CallError(CallErrorKind.NO_PREDICTION, f"none of {turn}")] for turn in refused}
    seen = []
    for kind in (Caller, ImmediateCaller):
        with tempfile.TemporaryDirectory() as folder, SqliteJournal(Path(folder) / "j.sqlite") as journal:
            ask(kind(Answering(), journal, VERSION), sorted(known)) if known else None
            provider = Answering(failing, always=True)
            told: list[int] = []
            caller = kind(provider, journal, VERSION, progress=lambda counters, told=told: told.append(counters.done))
            answers = ask(caller, turns, size)
            seen.append((answers, caller.counters, provider.asked, told, bodies(journal, caller, range(10))))
    assert seen[1] == seen[0]
    assert seen[1][3] == list(range(1, len(turns) + 1))


def test_a_group_is_one_look_into_the_journal_and_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, sizes = [], []
    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        get_many, append_many = journal.get_many, journal.append_many
        monkeypatch.setattr(journal, "get", None)
        monkeypatch.setattr(journal, "get_many", lambda keys: looks.append(len(keys)) or get_many(keys))
        monkeypatch.setattr(journal, "append_many", lambda rows: sizes.append(len(rows)) or append_many(rows))
        caller = ImmediateCaller(Answering(), journal, VERSION)
        answers = ask(caller, range(100))
        assert len(journal.contains_many(caller.key(make_call(turn)) for turn in range(100))) == 100
    assert (looks, sizes, len(answers)) == ([100], [100], 100)


def test_an_equal_call_that_another_group_is_recording_is_not_asked_again(tmp_path: Path) -> None:
    provider = Answering()
    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        caller = ImmediateCaller(provider, journal, VERSION)

        async def twice() -> list[list[Answer]]:
            calls = [make_call(turn) for turn in (1, 2)]
            return list(await asyncio.gather(caller.ask_many(calls), caller.ask_many(calls)))

        first, second = asyncio.run(twice())
    assert provider.asked == [1, 2]
    assert second == [replace(answer, from_journal=True) for answer in first if isinstance(answer, Answered)]
    assert caller.counters == Counters(calls=2, answered=2, journal_hits=2, responses=2, tokens=23)


def test_answers_that_another_process_recorded_first_are_the_ones_used(tmp_path: Path) -> None:
    class Overtaken(Answering):
        def answer(self, call: Call) -> Response:
            if call.turn_index == 1:  # after the look into the journal, before the commit
                theirs.execute(
                    "INSERT INTO responses(key, body, written_at) VALUES (?, ?, 0)",
                    (caller.key(call), encode_response(Response("theirs"))),
                )
            return super().answer(call)

    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        theirs = sqlite3.connect(tmp_path / "j.sqlite", isolation_level=None)
        caller = ImmediateCaller(Overtaken(), journal, VERSION)
        answers = ask(caller, [0, 1, 2])
        theirs.close()
    assert texts(answers) == ["answer 0", "theirs", "answer 2"]
    assert [answer.from_journal for answer in answers if isinstance(answer, Answered)] == [False, True, False]


def test_a_failure_is_an_answer_and_is_not_journalled(tmp_path: Path) -> None:
    provider = Answering({1: [CallError(CallErrorKind.OVERLOADED, "nothing there", retryable=True)]})
    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        caller = ImmediateCaller(provider, journal, VERSION)
        answers = ask(caller, [0, 1])
        assert bodies(journal, caller, [0, 1])[1] is None
    assert answers[1] == CallFailure(CallErrorKind.OVERLOADED, "nothing there")
    assert provider.asked == [0, 1]
    assert caller.counters.failures == 1


def test_what_ends_the_run_comes_through_and_what_came_before_it_is_kept(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        caller = ImmediateCaller(Answering({2: [FatalCallError("no such suite")]}), journal, VERSION)
        with pytest.raises(FatalCallError, match="no such suite"):
            ask(caller, [0, 1, 2, 3])
        assert [body is not None for body in bodies(journal, caller, range(4))] == [True, True, False, False]
        ask(caller, [0, 1, 2, 3])
    assert caller.counters.journal_hits == 2


def test_who_waits_for_another_group_hears_when_that_cannot_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(rows: Sequence[Row]) -> list[bool]:
        await asyncio.sleep(0.01)
        raise StoreError("full")

    async def twice(caller: ImmediateCaller) -> list[object]:
        groups = [caller.ask_many([make_call(turn) for turn in (0, 1)]) for _ in range(2)]
        return await asyncio.wait_for(asyncio.gather(*groups, return_exceptions=True), 5)

    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        monkeypatch.setattr(journal, "append_many", full)
        told = asyncio.run(twice(ImmediateCaller(Answering(), journal, VERSION)))
    assert [str(error) for error in told] == ["full", "full"]


def test_who_waits_for_a_group_that_is_cancelled_asks_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Answering()

    async def cancel_the_first(caller: ImmediateCaller, journal: SqliteJournal) -> list[Answer]:
        append_many, forever = journal.append_many, asyncio.Event()

        async def stuck(rows: Sequence[Row]) -> list[bool]:
            await forever.wait()
            return await append_many(rows)

        monkeypatch.setattr(journal, "append_many", stuck)
        first = asyncio.create_task(caller.ask_many([make_call(turn) for turn in (0, 1)]))
        await asyncio.sleep(0)
        monkeypatch.setattr(journal, "append_many", append_many)
        second = asyncio.create_task(caller.ask_many([make_call(turn) for turn in (1, 2)]))
        await asyncio.sleep(0.01)
        assert not second.done()
        first.cancel()
        return await asyncio.wait_for(second, 5)

    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        answers = asyncio.run(cancel_the_first(ImmediateCaller(provider, journal, VERSION), journal))
    assert texts(answers) == ["answer 1", "answer 2"]


def test_an_unreadable_entry_is_told(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "j.sqlite") as journal:
        caller = ImmediateCaller(Answering(), journal, VERSION)
        asyncio.run(journal.append(caller.key(make_call(1)), b"garbage"))
        with pytest.raises(StoreError, match=r"j\.sqlite has an unreadable entry.*doctor"):
            ask(caller, [0, 1])
