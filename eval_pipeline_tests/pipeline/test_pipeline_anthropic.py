"""An evaluation in which each question meets its own fault of the fake Anthropic server: what is on the attempt."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline_tests.fakes.anthropic_batches import EXPIRED
from eval_pipeline_tests.fakes.anthropic_faults import (
    MESSAGES,
    OVERLOADED,
    RATE_LIMITED,
    Asked,
    BrokenStream,
    ErrorEvent,
    Fault,
    Hang,
    Malformed,
    Reset,
    Status,
)
from eval_pipeline_tests.fakes.anthropic_lab import MODEL
from eval_pipeline_tests.fakes.anthropic_messages import Answer, Body, question
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.support import Lab, case, number

STAYING: dict[str, tuple[Fault, str]] = {
    "limited": (RATE_LIMITED, "rate_limited"),
    "asked-to-wait": (Status(429, "rate_limit_error", retry_after="0"), "rate_limited"),
    "overloaded": (OVERLOADED, "overloaded"),
    "broken": (Status(500), "overloaded"),
    "event": (ErrorEvent(), "overloaded"),
    "cut": (BrokenStream(), "connection"),
    "reset": (Reset(), "connection"),
    "garbled": (Malformed(), "bad_response"),
    "hanging": (Hang(), "timeout"),
    "too-long": (Status(413, "request_too_large"), "bad_request"),
}
STOPPED = {"refusing": ("refusal", "refused"), "endless": ("max_tokens", "max_tokens")}
PASSING: dict[str, Fault] = {"once": OVERLOADED, "torn-once": BrokenStream()}
FINE = "fine"

Rows = dict[str, tuple[Any, ...]]


@pytest.fixture
def claude(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes a suite of one turn a case and a model version `claude` that asks a server."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    def pause(self: RetryPolicy, error: CallError, retries: int, rng: Random) -> float | None:
        return 0.0 if error.retryable and retries < 2 else None

    monkeypatch.setattr(RetryPolicy, "pause", pause)

    def write(server: AnthropicServer, *names: str, **fields: Any) -> None:
        options = {"base_url": server.url, "timeout_s": 1.5, **fields.pop("options", {})}
        lab.suite(cases=[case(name, ("50", 50.0)) for name in names])
        lab.versions({"name": "claude", "provider": "anthropic", "model": MODEL, "options": options, **fields})

    return write


def answer(body: Body) -> Answer:
    stop = STOPPED.get(question(body).split()[0], ("end_turn", ""))[0]
    return Answer(number(50), stop)


def attempts(lab: Lab) -> Rows:
    columns = "split_part(turn_id, '/', 2), outcome, call_error, retries, stop_reason, input_tokens, batch"
    return {row[0].split("#")[0]: row[1:] for row in lab.sql(f"SELECT {columns} FROM attempts WHERE number = 0")}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_every_fault_has_its_name_on_the_attempt_and_the_run_goes_on(
    stream: bool, lab: Lab, claude: Callable[..., None]
) -> None:
    passed: set[str] = set()

    def fault(asked: Asked) -> Fault | None:
        name = asked.question.split()[0].rstrip("?")
        if name in PASSING and name not in passed:
            passed.add(name)
            return PASSING[name]
        return STAYING[name][0] if name in STAYING else None

    with AnthropicServer(answer, faults=fault) as server:
        claude(server, *STAYING, *STOPPED, *PASSING, FINE, options={"stream": stream})
        lab.evaluate(version="claude", publish=True)
        rows = attempts(lab)

    assert {name: row[:2] for name, row in rows.items() if name in STAYING} == {
        name: ("call_error", kind) for name, (_, kind) in STAYING.items()
    }
    assert {row[2] for name, row in rows.items() if name in STAYING and name != "too-long"} == {2}
    assert rows["too-long"][2] == 0
    for name, (stop_reason, kind) in STOPPED.items():
        outcome, call_error, retries, told, tokens, batch = rows[name]
        assert (outcome, call_error, retries, told, batch) == ("call_error", kind, 0, stop_reason, False)
        assert tokens > 100  # it was paid for
    assert {name: row[:3] for name, row in rows.items() if name in PASSING} == dict.fromkeys(PASSING, ("ran", None, 1))
    assert rows[FINE][:3] == ("ran", None, 0)
    right = {name for (name,) in lab.sql("SELECT case_id FROM turn_results WHERE correct")}
    assert right == {FINE, *PASSING}


def test_a_wrong_key_ends_the_run_with_one_sentence(
    lab: Lab, claude: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-wrong-0000")
    with AnthropicServer(answer) as server:
        claude(server, "a", "b")
        with pytest.raises(FatalCallError, match="the API refuses the key in ANTHROPIC_API_KEY"):
            lab.evaluate(version="claude")


def test_a_batch_with_expired_and_errored_entries_is_completed_singly(lab: Lab, claude: Callable[..., None]) -> None:
    names = [f"case{number}" for number in range(6)]
    bad = {"case1": EXPIRED, "case2": "overloaded_error", "case3": "invalid_request_error"}

    def entry(custom_id: str, body: Body) -> str | None:
        return bad.get(question(body).split()[0])

    def fault(asked: Asked) -> Fault | None:
        refused = asked.operation == MESSAGES and asked.question.startswith("case3")
        return Status(400, "invalid_request_error") if refused else None

    with AnthropicServer(answer, batch_entry=entry, batch_polls=0, faults=fault) as server:
        claude(server, *names, batch=True)
        lab.evaluate(version="claude")
        rows = attempts(lab)
    assert {name: row[5] for name, row in rows.items()} == {
        "case0": True, "case1": False, "case2": False, "case3": None, "case4": True, "case5": True
    }  # fmt: skip
    assert rows["case3"][:2] == ("call_error", "bad_request")
    assert len(server.model.batches) == 1
    assert set(server.model.charged.values()) == {1}


def test_the_key_is_in_no_file_of_the_home(lab: Lab, claude: Callable[..., None]) -> None:
    fault = Status(500, "api_error", echo_key=True)
    with AnthropicServer(lambda body: f"{number(50)} {KEY}", faults=[fault, None]) as server:
        claude(server, "a", "b")
        lab.evaluate(version="claude", publish=True)
    files = [path for path in Path(lab.home.root).rglob("*") if path.is_file()]
    assert any(path.name.startswith("journal") for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    shown = json.dumps(lab.sql("SELECT response, metadata, error_message FROM attempts"), default=str)
    assert KEY not in shown
    assert "[redacted]" in shown
