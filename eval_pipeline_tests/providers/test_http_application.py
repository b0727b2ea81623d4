"""The provider `http` against a small application on a real socket."""

import asyncio
import gzip
import json
import socket
import traceback
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.asking.answers import Answered
from eval_pipeline.asking.calls import Caller
from eval_pipeline.asking.journal.sqlite import SqliteJournal
from eval_pipeline.core.model import CallErrorKind, CallFailure, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.application import provider as http_application
from eval_pipeline.providers.application.provider import ApplicationProvider
from eval_pipeline.providers.base import Call, CallError, Environment, FatalCallError
from eval_pipeline.providers.validation import SettingsError
from eval_pipeline_tests.fakes.application_server import (
    TOKEN,
    ApplicationServer,
    Drip,
    Flood,
    Hang,
    Raw,
    Reset,
    Status,
    Step,
)
from eval_pipeline_tests.fakes.scripted import make_call
from eval_pipeline_tests.support import Lab

MAPPED = {
    "answer_path": "$.result.calculation",
    "answer_field": "calculation",
    "input_tokens_path": "$.usage.input",
    "output_tokens_path": "$.usage.output",
    "cost_path": "$.cost_usd",
}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPLICATION_TOKEN", TOKEN)


def make_version(url: str, options: dict[str, Any] | None = None, **fields: Any) -> ModelVersion:
    headers = {"Authorization": "APPLICATION_TOKEN"}
    options = {"base_url": url, "path": "/ask", "headers_env": headers, **(options or {})}
    return ModelVersion(name="v", provider="http", **{"options": options, "deadline_s": 10, **fields})


def make_provider(
    url: str = "http://127.0.0.1:9", options: dict[str, Any] | None = None, **fields: Any
) -> ApplicationProvider:
    return ApplicationProvider(make_version(url, options, **fields), Environment())


def ask(provider: ApplicationProvider, *calls: Call) -> list[Response]:
    async def run() -> list[Response]:
        async with provider:
            return [await provider.generate(call) for call in calls or (make_call(),)]

    return asyncio.run(asyncio.wait_for(run(), 30))


def journalled(folder: Path, version: ModelVersion) -> Answered | CallFailure:
    """The answer of a version that is asked with a journal."""

    async def run() -> Answered | CallFailure:
        async with ApplicationProvider(version, Environment()) as provider:
            with SqliteJournal(folder / "j.sqlite") as journal:
                return await Caller(provider, journal, version).ask(make_call())

    return asyncio.run(run())


def failure(step: Step, options: dict[str, Any] | None = None, **fields: Any) -> CallError | FatalCallError:
    """How a call fails that is answered so; there is nothing of the token in it."""
    with ApplicationServer(script=[step]) as server, pytest.raises((CallError, FatalCallError)) as raised:
        ask(make_provider(server.url, MAPPED if options is None else options, **fields))
    told: CallError | FatalCallError = raised.value
    assert TOKEN.split()[1] not in "".join(traceback.format_exception(told))  # as `--debug` shows it
    return told


def test_the_application_gets_the_task_and_its_answer_is_mapped() -> None:
    with ApplicationServer({"How much?": "412.5 - 331"}) as server:
        provider = make_provider(server.url, {**MAPPED, "body": {"tenant": "evaluation"}})
        call = make_call(3, case="alder", sample=1, number=2, text="How much?")
        [response] = ask(provider, call)
    assert json.loads(response.text) == {"calculation": "412.5 - 331"}
    assert response.usage == Usage(len(server.asked[0].body), len("412.5 - 331"))
    assert response.usd == 0.0025
    assert 0 < (response.first_byte_ms or 0) <= (response.latency_ms or 0)
    assert response.metadata["request_id"] == "request-1"
    assert response.metadata["sdk"].startswith("httpx2 ")
    assert server.bodies == [
        {
            "tenant": "evaluation",
            "question": "How much?",
            "context": {},
            "history": [],
            "suite": "suite",
            "case_id": "alder",
            "turn_id": "suite/alder#3",
            "turn_index": 3,
            "sample": 1,
            "attempt": 2,
        }
    ]
    request = provider.request(call)
    assert (request["url"], request["body"]) == (f"{server.url}/ask", server.bodies[0])
    assert server.asked[0].headers["authorization"] == TOKEN
    assert server.asked[0].headers["content-type"] == "application/json"


def test_without_paths_the_answer_is_taken_as_it_is() -> None:
    said = '{"plan": [{"tool": "extract", "value": 412.5, "source": "µ"}]}'
    with ApplicationServer(script=[Raw(said.encode()), Raw(b"\xef\xbb\xbf" + said.encode()), Raw(b"")]) as server:
        responses = ask(make_provider(server.url), make_call(), make_call(), make_call())
    assert [response.text for response in responses] == [said, said, ""]
    assert responses[0].usage == Usage(None, None)
    assert responses[0].usd is None


@pytest.mark.parametrize(
    ("step", "kind", "retryable", "told"),
    [
        (Status(500), CallErrorKind.OVERLOADED, True, "HTTP 500: made to fail"),
        (Status(503, "<p>busy</p>"), CallErrorKind.OVERLOADED, True, "HTTP 503: <p>busy</p>"),
        (Status(429, headers={"retry-after": "7"}), CallErrorKind.RATE_LIMITED, True, "HTTP 429"),
        (Status(422, '{"detail": "bad {token}"}'), CallErrorKind.BAD_REQUEST, False, "HTTP 422: bad [redacted]"),
        (Status(404, '{"detail": "no such page"}'), CallErrorKind.BAD_REQUEST, False, "HTTP 404: no such page"),
        (Reset(), CallErrorKind.CONNECTION, True, "the application: "),
        (Raw(b'{"result": 1}', cut_at=5), CallErrorKind.CONNECTION, True, "the application: "),
        (Raw(b'{"result": {"calc'), CallErrorKind.BAD_RESPONSE, True, "the answer's JSON breaks off"),
        (Raw(b"<html>"), CallErrorKind.BAD_RESPONSE, False, "the answer is no JSON: a web page"),
        (Raw(b'{"r": 1}'), CallErrorKind.BAD_RESPONSE, False, "the answer has nothing at $.result.calculation: "),
        (Raw(b"\xff\xfe"), CallErrorKind.BAD_RESPONSE, False, "the application's answer is not UTF-8"),
        (Raw(b"xx", {"content-encoding": "gzip"}), CallErrorKind.BAD_RESPONSE, True, "cannot be decompressed"),
        (Hang(), CallErrorKind.TIMEOUT, True, ""),
    ],
)
def test_failures(step: Step, kind: CallErrorKind, retryable: bool, told: str) -> None:
    error = failure(step, deadline_s=0.2 if isinstance(step, Hang) else 10)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert told in error.message
    assert error.retry_after == (7.0 if isinstance(step, Status) and step.headers else None)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (Status(401), "the endpoint refuses the key (HTTP 401: made to fail)"),
        (Status(403, '{"detail": "not {token}"}'), "the endpoint refuses the key (HTTP 403: not [redacted])"),
        (
            Status(307, headers={"location": "https://new.example.com/ask?token=abc"}),
            "the endpoint redirects to https://new.example.com/ask (HTTP 307)",
        ),
    ],
)
def test_failures_that_end_the_run(step: Step, told: str) -> None:
    error = failure(step)
    assert isinstance(error, FatalCallError)
    assert told in str(error)


def test_nobody_listening_is_a_connection_that_failed() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        with pytest.raises(CallError) as raised:
            ask(make_provider(f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert (raised.value.kind, raised.value.retryable) == (CallErrorKind.CONNECTION, True)


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_without_end_is_given_up(packed: bool) -> None:
    bomb = Raw(gzip.compress(b"x" * (http_application.LARGEST_ANSWER + 1)), {"content-encoding": "gzip"})
    error = failure(bomb if packed else Flood(), {})
    assert (error.kind, error.retryable) == (CallErrorKind.BAD_RESPONSE, False)
    assert error.message == "the application's answer is larger than 10 MiB"


def test_an_answer_that_drips_is_ended_by_the_deadline_of_the_question(tmp_path: Path) -> None:
    with ApplicationServer(script=[Drip()]) as server:
        answer = journalled(tmp_path, make_version(server.url, deadline_s=0.5))
    assert isinstance(answer, CallFailure)
    assert answer.kind == CallErrorKind.TIMEOUT


def test_the_journal_answers_without_token_and_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An application that repeats in its answer what it was authorised with.
    echo = Status(200, '{"result": {"calculation": "1"}, "usage": {}, "headers": "{token}"}')
    with ApplicationServer(script=[echo]) as server:
        version = make_version(server.url, {})
        first = journalled(tmp_path, version)
    assert json.loads(first.response.text)["headers"] == "[redacted]"
    monkeypatch.delenv("APPLICATION_TOKEN")
    assert journalled(tmp_path, version) == Answered(first.response, from_journal=True)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"calculation" in kept
    assert TOKEN.split()[1].encode() not in kept


def test_an_answer_read_in_another_way_or_under_another_name_is_asked_for_anew(tmp_path: Path) -> None:
    """The journal keeps what was read of an answer; and a new name is what tells that the application changed."""

    async def text(version: ModelVersion) -> str:
        async with ApplicationProvider(version, Environment()) as provider:
            answer = await Caller(provider, journal, version).ask(make_call())
        return answer.response.text

    with ApplicationServer() as server, SqliteJournal(tmp_path / "j.sqlite") as journal:
        first = make_version(server.url, {"answer_path": "$.result.steps"})
        mended = make_version(server.url, {"answer_path": "$.result.calculation"})
        renamed = mended.model_copy(update={"name": "w"})
        told = [asyncio.run(text(version)) for version in (first, mended, renamed, mended)]
    assert told == ['["42"]', "42", "42", "42"]
    assert len(server.asked) == 3


def test_a_run_against_the_application_counts_the_dollars_it_tells(lab: Lab) -> None:
    lab.suite()
    with ApplicationServer({"alpha 0?": "50", "alpha 1?": "50 + 7"}) as server:
        lab.versions(make_version(server.url, MAPPED).model_dump(mode="json", exclude_defaults=True) | {"name": "app"})
        lab.evaluate(version="app")
        contexts = [body["context"] for body in server.bodies]
    assert lab.sql("SELECT count(*), sum(usd), bool_and(call_error IS NULL) FROM attempts") == [(3, 0.0075, True)]
    assert lab.sql("SELECT turn_id FROM finqa_turns WHERE correct ORDER BY ALL") == [
        (f"small/alpha#{turn}",) for turn in (0, 1)
    ]
    assert all("sales" in json.dumps(context) for context in contexts)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"options": {}}, "options.base_url: is missing"),
        ({"options": {"base_url": "host"}}, "options.base_url: expected an address such as https://host/v1, found"),
        ({"options": {"answer_path": "$.["}}, r"options.answer_path: expected a JSONPath such as \$.answer \("),
        ({"options": {"cost_path": "$[?"}}, r"options.cost_path: expected a JSONPath such as \$.answer \("),
        ({"options": {"body": {"question": "x"}}}, "options.body.question: is a field of every request already"),
        ({"options": {"headers_env": {"A": "a b"}}}, "options.headers_env.A: expected the name of an environment vari"),
        ({"options": {"anser_path": "$"}}, "options.anser_path: unknown field; allowed: base_url, path, headers_env"),
        ({"sampling": {"temperature": 0}}, "sampling: means nothing to the provider 'http'; leave it out"),
    ],
)
def test_wrong_settings_are_refused(fields: dict[str, Any], told: str) -> None:
    given = fields.get("options", {"path": "/"})
    options = given and {"base_url": "http://127.0.0.1", **given}
    with pytest.raises(SettingsError, match=f"model version 'v': {told}"):
        ApplicationProvider(ModelVersion(name="v", provider="http", **fields | {"options": options}), Environment())
