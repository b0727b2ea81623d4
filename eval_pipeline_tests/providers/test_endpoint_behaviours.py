"""Behaviours of endpoints, on the wire and through the real SDK: what is read, what is told, what is paid."""

import gzip
import json
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.model import CallErrorKind, Usage
from eval_pipeline.providers.base import CallError, FatalCallError
from eval_pipeline.providers.validation import SettingsError
from eval_pipeline_tests.fakes.openai_lab import ask, make_provider
from eval_pipeline_tests.fakes.openai_server import KEY, OpenAIServer, Raw
from eval_pipeline_tests.fakes.scripted import make_call
from eval_pipeline_tests.goldens import golden

BEHAVIOURS: list[dict[str, Any]] = golden("endpoint_behaviours.yaml")
RUNS = [(row, stream) for row in BEHAVIOURS for stream in ([True] if "events" in row else [False, True])]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def reply(row: dict[str, Any]) -> Raw:
    headers = dict(row.get("headers", {}))
    if "events" in row:
        lines = [one if isinstance(one, str) else f"data: {json.dumps(one)}" for one in row["events"]]
        return Raw("\n\n".join([*lines, "data: [DONE]", ""]).encode(), "text/event-stream", headers=headers)
    body = (row["text_body"] if "text_body" in row else json.dumps(row["json"])).encode()
    if headers.get("content-encoding") == "gzip":
        body = gzip.compress(body)
    return Raw(body, headers.pop("content-type", "application/json"), "", row.get("status", 200), headers)


@pytest.mark.parametrize(("row", "stream"), RUNS, ids=[f"{row['name']}-{stream}" for row, stream in RUNS])
def test_a_behaviour(row: dict[str, Any], stream: bool) -> None:
    options = {"stream": stream, **row.get("options", {})}
    with OpenAIServer([reply(row)]) as server:
        provider = make_provider(server.url, options, sampling=row.get("sampling", {}))
        if "text" in row:
            [response] = ask(provider, make_call())
        else:
            with pytest.raises((CallError, FatalCallError)) as raised:
                ask(provider, make_call())
    assert server.asked[0].path == row.get("path", "/v1/chat/completions")
    for name, value in row.get("sent", {}).items():
        assert server.bodies[0].get(name) == value
    if "text" not in row:
        error = raised.value
        assert isinstance(error, FatalCallError) == row.get("fatal", False)
        if isinstance(error, CallError):
            assert (error.kind, error.retryable) == (row["kind"], row.get("retry", False))
            assert error.retry_after == row.get("wait")
        assert row.get("says", "") in str(error)
        assert row.get("says_not", "nothing of the kind") not in str(error)
        return
    told = (response.text, response.reasoning, response.call_error)
    wrong = CallErrorKind(row["call_error"]) if "call_error" in row else None
    assert told == (row["text"], row.get("reasoning", response.reasoning), wrong)
    if "usage" in row:
        assert response.usage == (Usage(*row["usage"]) if row["usage"] else Usage())
    for name in ("model", "answered_in"):
        if name in row or name == "answered_in":
            assert response.metadata.get(name) == row.get(name)


@pytest.mark.parametrize("concurrency", [1, 64])  # one pool of connections, and several
def test_a_certificate_of_an_authority_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    key, certificate, trusted = (tmp_path / f"{name}.pem" for name in ("key", "certificate", "trusted"))
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    for made in (trusted, certificate):
        subprocess.run([*make, *names, "-keyout", key, "-out", made], check=True, capture_output=True)
    server = OpenAIServer()
    server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.tls.load_cert_chain(certificate, key)
    with server:
        for file in ("", str(trusted)):
            monkeypatch.setenv("SSL_CERT_FILE", file)
            with pytest.raises(FatalCallError, match="put the path of its certificate into SSL_CERT_FILE"):
                ask(make_provider(server.url, concurrency=concurrency))
        certificate.replace(trusted)  # as where a daemon gets another certificate at the same place
        assert ask(make_provider(server.url, concurrency=concurrency))[0].text == "42"


def test_settings_that_the_responses_api_does_not_know_are_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"sampling\.seed: is unknown to the Responses API, which has reasoning_effo"
    ):
        make_provider(options={"api": "responses"}, sampling={"seed": 1})
