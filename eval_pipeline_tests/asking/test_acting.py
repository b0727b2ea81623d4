"""The loop of an agent: what it asks, calls and keeps, where it ends, and that nothing is paid for twice."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline.asking.answers import Answer, Answered
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.core.model import (
    CallErrorKind,
    CallFailure,
    ErrorClass,
    Json,
    Response,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from eval_pipeline.core.model_versions import ModelVersion, Price
from eval_pipeline.providers.base import CallError, Environment, FatalCallError
from eval_pipeline.providers.standins.oracle import NullProvider, OracleProvider
from eval_pipeline.sandbox.world.errors import WorldError
from eval_pipeline.stages.attempts.agents.acting import Attempted, act
from eval_pipeline.stages.attempts.agents.programs import _ProgramAttempt
from eval_pipeline.stages.attempts.ask import parse_response
from eval_pipeline.tracks.capabilities import ActLimits, Acts, Concluded
from eval_pipeline_tests.asking.callers import make_caller
from eval_pipeline_tests.fakes.scripted import PlainGold, ScriptedProvider, Step, make_call

TURN = "suite/case#0"
TOOL = Tool("add", "adds to the total", {"type": "object", "properties": {"n": {"type": "integer"}}})


MADE = {"name": "total", "kind": "int", "rows": None, "columns": [["", "ab"]]}
PRICED = ModelVersion(name="v", provider="openai", model="m", price=Price(input=1.0, output=1.0))


class KilledError(BaseException):
    """Stands for the end of the process."""


class Total:
    """A world with a total; its clock says something else each time."""

    def __init__(self, clock: list[int], replies: Sequence[str] = ()) -> None:
        self.total, self._clock, self.replies = 0, clock, list(replies)

    async def call(self, name: str, arguments: Mapping[str, Json], seconds: float) -> ToolResult:
        if name == "answer" and self.replies:
            return ToolResult(self.replies.pop(), is_reply=True)
        if name == "answer":
            return ToolResult("", ends=True, answer=arguments["answer"])
        if name == "clock":
            self._clock[0] += 1
            return ToolResult(str(self._clock[0]))
        if name == "break":
            raise WorldError("the jail is gone")
        if name != "add":
            return ToolResult(f"there is no tool '{name}'", ErrorClass.VALUE)
        self.total += int(arguments["n"])
        return ToolResult(f"total {self.total}", rows=1, size=9, made=(MADE,))

    async def end_state(self) -> Mapping[str, Json]:
        return {"total": self.total}


class Adding(Acts):
    def __init__(self, **limits: Any) -> None:
        self._limits = ActLimits(**limits)
        self.clock, self.data = [0], "as it was"
        self.replies: tuple[str, ...] = ()

    def tools(self, case: Any) -> tuple[Tool, ...]:
        return (TOOL,)

    def limits(self, case: Any) -> ActLimits:
        return self._limits

    def surroundings(self, case: Any) -> str:
        return self.data

    @asynccontextmanager
    async def world(self, executor: Any, case: Any, turn: Any) -> AsyncIterator[Total]:
        yield Total(self.clock, self.replies)


def says(*calls: ToolCall, text: str = "", tokens: int = 5) -> Response:
    return Response(text, usage=Usage(10, tokens), latency_ms=2.0, usd=0.001, calls=calls)


def add(n: Any, id_: str = "a") -> ToolCall:
    return ToolCall(id_, "add", {"n": n})


def answers(value: Json) -> ToolCall:
    return ToolCall("z", "answer", {"answer": value})


def attempt(folder: Path, script: Sequence[Step], track: Adding | None = None, **settings: Any) -> Any:
    """Makes the attempt of a script: the answer, and the provider that was asked."""
    provider = ScriptedProvider(script={TURN: script}, default=None)
    with SqliteJournal(folder / "journal.sqlite") as journal:
        return asyncio.run(_act(make_caller(provider, journal, **settings), track or Adding())), provider


async def _act(caller: Caller, track: Adding, text: str = "What is it?") -> Answer:
    nothing: Any = None
    return await act(track, nothing, caller, make_call(0, text=text, tools=(TOOL,)), nothing, nothing)


def trajectory(answer: Answer) -> Any:
    assert isinstance(answer, Answered)
    return json.loads(answer.response.text)


def test_a_trajectory_has_every_step_and_the_sums_of_its_calls(tmp_path: Path) -> None:
    script = [says(add(2, "a"), add(3, "b"), text="adding"), says(ToolCall("c", "sub", {})), says(answers([5]))]
    answer, provider = attempt(tmp_path, script)
    told = trajectory(answer)
    assert [(step["kind"], step.get("name"), step.get("result")) for step in told["steps"]] == [
        ("model", None, None),
        ("tool", "add", "total 2"),
        ("tool", "add", "total 5"),
        ("model", None, None),
        ("tool", "sub", "there is no tool 'sub'"),
        ("model", None, None),
        ("tool", "answer", ""),
    ]
    assert (told["answer"], told["ended"], told["end_state"]) == ([5], "answered", {"total": 5})
    assert told["steps"][4]["error_class"] == "value_error"
    assert [step.get("made") for step in told["steps"]] == [None, [MADE], [MADE], None, None, None, None]
    response = answer.response
    assert (response.usage, response.usd, response.latency_ms) == (Usage(30, 15), pytest.approx(0.003), 6.0)
    last = provider.asked[-1].prompt
    assert last.tools == (TOOL,)
    assert "made" not in repr(last), "the model is not told"
    assert [(one.role, one.text, one.call_id) for one in last.messages[-5:]] == [
        ("assistant", "adding", ""),
        ("tool", "total 2", "a"),
        ("tool", "total 5", "b"),
        ("assistant", "", ""),
        ("tool", "there is no tool 'sub'", "c"),
    ]


@pytest.mark.parametrize(
    ("script", "limits", "ended"),
    [
        ([says(text="I do not know")], {}, "gave_up"),
        ([says(add(1))] * 3, {"steps": 3}, "steps"),
        ([says(add(1), add(1), add(1), add(1))], {"steps": 2}, "steps"),
        ([says(add(1))] * 2, {"model_calls": 2}, "model_calls"),
        ([says(add(1), tokens=90)], {"tokens": 100}, "tokens"),
        ([says(add(1))] * 2, {"usd": 0.0015}, "usd"),
        ([says(add(1))], {"seconds": 0.0}, "seconds"),
        ([Response("no", call_error=CallErrorKind.REFUSED)], {}, "refused"),
        ([says(add(1)), Response("so", call_error=CallErrorKind.MAX_TOKENS)], {}, "max_tokens"),
    ],
)
def test_an_attempt_ends_at_each_limit_and_says_so(
    script: list[Step], limits: dict[str, Any], ended: str, tmp_path: Path
) -> None:
    answer, provider = attempt(tmp_path, script if ended != "seconds" else [], Adding(**limits))
    told = trajectory(answer)
    assert (told["ended"], told["answer"]) == (ended, None) and told["why"]
    assert len(provider.asked) == (0 if ended == "seconds" else len(script))


@pytest.mark.parametrize(
    ("limits", "version", "usage", "ended"),
    [
        ({"tokens": 100}, None, Usage(None, 5), "tokens"),
        ({"tokens": 500}, None, Usage(10, None), "tokens"),
        ({"tokens": 500, "model_calls": 1}, None, Usage(), "tokens"),
        ({"usd": 0.0005}, PRICED, Usage(), "usd"),
        ({"usd": 0.0005, "model_calls": 1}, PRICED, Usage(), "usd"),
        ({"usd": 1.0}, PRICED, Usage(), "answered"),
        ({"usd": 0.0005}, PRICED, Usage(1, 1, 9000, 0), "usd"),
        ({"usd": 1.0}, PRICED, Usage(1, 1, 9000, 0), "answered"),
        ({"usd": 0.0005}, ModelVersion(name="free", provider="oracle"), Usage(), "answered"),
    ],
)
def test_limits_hold_where_tokens_are_not_told(
    limits: dict[str, Any], version: ModelVersion | None, usage: Usage, ended: str
) -> None:
    """Then more is counted than can have been used, and no call of the answer that reaches a limit is made."""
    long = Response("x" * 600, usage=usage, calls=(add(1), add(2)), asked_on="2026-01-01")
    settings = {} if version is None else {"version": version}
    last = Response("", usage=usage, calls=(answers(1),), asked_on="2026-01-01")
    told = acted([long, last], Adding(**limits), **settings)
    assert told["ended"] == ended
    assert told["end_state"] == {"total": 3 if ended == "answered" else 0}
    assert told["steps"][0]["usd"] is None, "what was not told is not known afterwards"


def acted(script: Sequence[Step], track: Adding, **settings: Any) -> Any:
    with TemporaryDirectory() as folder, SqliteJournal(Path(folder) / "journal.sqlite") as journal:
        caller = make_caller(ScriptedProvider(script={TURN: script}, default=None), journal)
        caller.version = settings.get("version", caller.version)
        return trajectory(asyncio.run(_act(caller, track)))


def test_dollars_are_not_limited_where_nobody_knows_them() -> None:
    version = ModelVersion(name="unpriced", provider="openai", model="nobody-sells-this")
    says_nothing = Response("", usage=Usage(10, 5), calls=(add(1),), asked_on="2026-01-01")
    with pytest.raises(FatalCallError, match="'unpriced' cost is unknown: give the model version a `price`"):
        acted([says_nothing], Adding(usd=1.0), version=version)
    assert acted([says_nothing, says(answers(1))], Adding(), version=version)["ended"] == "answered"


def test_of_several_answers_in_one_response_the_first_counts(tmp_path: Path) -> None:
    two = says(answers(1), answers(2), add(7))
    told = acted([two], Adding())
    assert (told["answer"], told["end_state"], len(told["steps"])) == (1, {"total": 0}, 2)
    track = Adding()
    track.replies = ("And now?",)
    told, provider = attempt(tmp_path, [two, says(answers(3))], track)
    steps = trajectory(told)["steps"]
    assert [step.get("error_class") for step in steps] == [None, None, "value_error", None, None, None]
    assert "read the reply first" in provider.asked[-1].prompt.messages[-2].text
    assert (trajectory(told)["answer"], trajectory(told)["end_state"]) == (3, {"total": 7})
    again, provider = attempt(tmp_path, [], track)
    assert provider.asked == [] and without_measured(trajectory(again)) == without_measured(trajectory(told))


def test_arguments_that_are_no_json_are_told_to_the_model(tmp_path: Path) -> None:
    answer, _ = attempt(tmp_path, [says(ToolCall("a", "add", malformed='{"n": ')), says(answers(None))])
    assert trajectory(answer)["steps"][1]["error_class"] == "syntax_error"
    assert '{"n": ' in trajectory(answer)["steps"][1]["result"]


def test_a_call_that_fails_ends_the_attempt_and_asking_again_goes_on(tmp_path: Path) -> None:
    failed = CallError(CallErrorKind.BAD_REQUEST, "no")
    answer, provider = attempt(tmp_path, [says(add(2)), failed])
    assert isinstance(answer, CallFailure) and len(provider.asked) == 2
    answer, provider = attempt(tmp_path, [says(answers(1))])
    assert trajectory(answer)["end_state"] == {"total": 2} and len(provider.asked) == 1


def test_an_attempt_killed_anywhere_goes_on_where_it_was_and_ends_the_same(tmp_path: Path) -> None:
    script = [says(add(2), ToolCall("t", "clock", {})), says(add(3)), says(answers(5))]
    (tmp_path / "whole").mkdir()
    whole = trajectory(attempt(tmp_path / "whole", script)[0])
    for point in range(1, 2 * 7 + 1):
        folder = tmp_path / str(point)
        folder.mkdir()
        track, asked, left, passed = Adding(), 0, list(script), [point]

        class Journal(SqliteJournal):
            async def find(self, key: str) -> bytes | None:
                self._pass()
                return await super().find(key)

            async def append(self, key: str, body: bytes) -> bool:
                is_new = await super().append(key, body)
                self._pass()
                return is_new

            def _pass(self, passed: list[int] = passed) -> None:
                passed[0] -= 1
                if passed[0] == 0:
                    raise KilledError

        while True:
            provider = ScriptedProvider(script={TURN: left}, default=None)
            with Journal(folder / "journal.sqlite") as journal:
                try:
                    again = trajectory(asyncio.run(_act(make_caller(provider, journal), track)))
                except KilledError:
                    asked += len(provider.asked)
                    left = left[len(provider.asked) :]
                    continue
            asked += len(provider.asked)
            break
        assert asked == len(script), f"killed at {point}: a call was paid for twice"
        assert without_measured(again) == without_measured(whole)


def without_measured(told: Any) -> Any:
    measured = {"from_journal", "seconds", "differs_now"}
    return {**told, "steps": [{k: v for k, v in step.items() if k not in measured} for step in told["steps"]]}


def test_a_tool_that_says_something_else_later_is_noted_and_costs_nothing(tmp_path: Path) -> None:
    track, script = Adding(), [says(ToolCall("t", "clock", {})), says(answers(1))]
    first, _ = attempt(tmp_path, script, track)
    again, provider = attempt(tmp_path, [], track)
    assert provider.asked == [] and again.from_journal
    assert trajectory(again)["steps"][1] == {**trajectory(first)["steps"][1], "differs_now": True}


def test_what_a_tool_gave_is_told_again_only_where_all_before_was_the_same(tmp_path: Path) -> None:
    track, last = Adding(), [says(answers(1))]
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:

        def total(text: str, *script: Response) -> Any:
            provider = ScriptedProvider(script={TURN: [*script, *last]}, default=None)
            return trajectory(asyncio.run(_act(make_caller(provider, journal), track, text)))["steps"][-3]["result"]

        assert total("with one prompt", says(add(2)), says(add(3))) == "total 5"
        assert total("with another", says(add(7)), says(add(3))) == "total 10", "another attempt's result is told"
        assert total("clock", says(ToolCall("t", "clock", {}))) == "1"
        assert total("clock") == "1"
        track.data = "corrected"
        assert total("clock") == "3", "a result of data that are no more is told"


def test_a_world_that_ends_is_the_end_of_its_attempt_alone(tmp_path: Path) -> None:
    told = trajectory(attempt(tmp_path, [says(add(1)), says(ToolCall("b", "break", {}))])[0])
    assert (told["ended"], told["answer"], told["end_state"]) == ("harness", None, {})
    assert told["why"] == "its world has ended: the jail is gone" and len(told["steps"]) == 3
    with pytest.raises(WorldError):
        attempt(tmp_path, [], Unmade())


class Mortal(Adding):
    """Its worlds end as if they were killed: one as it is made, one at its second call."""

    made = 0

    @asynccontextmanager
    async def world(self, executor: Any, case: Any, turn: Any) -> AsyncIterator[Total]:
        Mortal.made += 1
        if self.made == 1:
            raise WorldError("its process was killed")
        total = Total(self.clock)
        real, calls = total.call, [0]

        async def call(name: str, arguments: Mapping[str, Json], seconds: float) -> ToolResult:
            calls[0] += 1
            if self.made == 2 and calls == [2]:
                raise WorldError("its process was killed")
            return await real(name, arguments, seconds)

        total.call = call  # type: ignore[method-assign]
        yield total


def test_a_world_that_was_killed_is_made_again_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    script = [says(add(2)), says(add(3)), says(answers(5))]
    (tmp_path / "whole").mkdir()
    whole = trajectory(attempt(tmp_path / "whole", script)[0])
    answer, provider = attempt(tmp_path, script, Mortal())
    assert (Mortal.made, len(provider.asked)) == (3, 3)
    assert without_measured(trajectory(answer)) == without_measured(whole)
    assert not answer.from_journal
    assert [step["from_journal"] for step in trajectory(answer)["steps"] if step["kind"] == "model"] == [False] * 3


class Unmade(Adding):
    @asynccontextmanager
    async def world(self, executor: Any, case: Any, turn: Any) -> AsyncIterator[Total]:
        raise WorldError("no jail")
        yield  # pragma: no cover


class Reading(Acts):
    name = "reading"

    def parse(self, text: str, *, recorded: bool = False) -> str:
        return text


def test_tags_of_reasoning_within_a_trajectory_are_no_reasoning_of_its_own() -> None:
    track: Any = type("Track", (Adding, Reading), {})()
    for tag in ("<think>", "</think>", "<|channel|>", "<think>so</think>"):
        text = json.dumps({"steps": [{"result": f"a file with {tag} in it"}], "answer": 1})
        assert parse_response(track, text) == (text, None)


def test_stand_ins_follow_the_script_of_the_gold_step_by_step(tmp_path: Path) -> None:
    script = [{"name": "add", "arguments": {"n": 4}}, {"name": "answer", "arguments": {"answer": 4}}]
    call = make_call(0, gold=PlainGold(json.dumps(script)), tools=(TOOL,))
    told = []
    for name, kind in (("oracle", OracleProvider), ("null", NullProvider)):
        version = ModelVersion(name="v", provider=name)
        with SqliteJournal(tmp_path / name) as journal:
            caller = Caller(kind(version, Environment()), journal, version)
            nothing: Any = None
            told.append(trajectory(asyncio.run(act(Adding(), nothing, caller, call, nothing, nothing))))
    assert [(one["ended"], one["answer"], one["end_state"]) for one in told] == [
        ("answered", 4, {"total": 4}),
        ("gave_up", None, {"total": 0}),
    ]


@pytest.mark.parametrize(
    ("steps", "refused", "said", "ended"),
    [
        (2, None, Concluded(None, "gave_up", "it said nothing"), "gave_up"),
        (2, ("tokens", "all are used"), Concluded(None, "gave_up", "it said nothing"), "tokens"),
        (3, None, Concluded(None, "gave_up", "it said nothing"), "steps"),
        (3, None, Concluded(ToolCall("", "answer", {"answer": 4})), "steps"),
        (2, ("tokens", "all are used"), Concluded(ToolCall("", "answer", {"answer": 4})), "answered"),
    ],
)
def test_a_program_without_an_answer_has_ended_by_the_limit_that_refused_it(
    steps: int, refused: tuple[str, str] | None, said: Concluded, ended: str
) -> None:
    async def call(*_: Any) -> ToolResult:
        return ToolResult("", ends=True, answer=4)

    limits = ActLimits(steps=2)
    attempt: Any = SimpleNamespace(track=SimpleNamespace(limits=lambda _: limits), case=None)
    beside: Any = [SimpleNamespace(ended=refused), SimpleNamespace(ended=False), SimpleNamespace(call=call)]
    done = Attempted(None, limits, ())
    done.steps = [{"kind": "tool"}] * steps
    found = asyncio.run(_ProgramAttempt._concluded(attempt, said, done, *beside))
    assert (found.ended or "answered", done.answer) == (ended, 4 if ended == "answered" else None)
