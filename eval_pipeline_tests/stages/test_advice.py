"""Hints fit what is asked: none names a setting that the provider does not have."""

import json
from typing import Any

import pytest

from eval_pipeline.core.model import Attempt, Ran, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.stages.attempts import advice as rules
from eval_pipeline.stages.attempts.advice import advice
from eval_pipeline.stages.attempts.seen import counted, example, seen_call_error, seen_error, seen_in_rows, seen_of
from eval_pipeline.tracks.registry import load_track
from eval_pipeline_plugins.tracks.agent.running.solving import result_of
from eval_pipeline_plugins.tracks.agent.trajectory import trajectory_from_json

KINDS = ("rate_limited", "overloaded", "timeout", "refused", "max_tokens", "bad_request", "connection", "bad_response")
OWN = {
    "openai": {"structured_output", "stream", "limit_field", "join_messages"},
    "http": {"path", "answer_"},
    "command": {"upstream"},
}
WORDS = "response_format|context length|stream|temperature|model|roles alternate|`max_tokens`|odd".split("|")
TEXTS = (
    "",
    "<html>",
    '{"error": 1}',
    "data: {}",
    "well",
    "You are an analyst",
    "\x00\x01\x02",
    '"{}"',
    '{"answr": "x"}',
)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "http", "local", "command"])
@pytest.mark.parametrize("track", ["finqa", "sql", "pandas", "sdmx"])
def test_there_is_always_a_hint_and_it_names_what_the_provider_has(provider: str, track: str) -> None:
    version = ModelVersion(name="v", provider=provider, options={"answer_field": "answr"} if provider == "http" else {})
    known = load_track(track)
    attempts = [[seen_call_error("t", kind, f"HTTP 400: {word}", "", False)] for kind in KINDS for word in WORDS]
    attempts += [[seen_error("t", "unreadable", "value_error", 'expected {"sql": …}', text)] for text in TEXTS]
    for seen in attempts:
        hints = advice(known, version, seen)
        assert hints
        assert len(hints) <= 2
        foreign = {name for other, names in OWN.items() if other != provider for name in names}
        told = " ".join(hints)
        assert not [name for name in foreign if f"options.{name}" in told], told
        assert provider != "command" or "options.base_url" not in told


@pytest.mark.parametrize(
    ("what", "text", "expected"),
    [
        ("unreadable", '{"plan": [', {"broken_off"}),
        ("unreadable", '{"plan": []}', set()),
        ("failed", '{"plan": [', set()),
        ("unreadable", "I see:\nwell", {"prose"}),
        ("failed", "I see:\nwell", set()),
        ("unreadable", "\x00\x01\ufffd well", {"nonsense", "prose"}),
        ("unreadable", " ", {"empty"}),
        ("failed", " ", set()),
        ("unreadable", '{"detail": "no quota"}', {"error_objects"}),
        ("unreadable", 'data: {"a": 1}', {"events"}),
        ("unreadable", "<html>", {"web_page", "prose"}),
    ],
)
def test_what_an_answer_looks_like_decides(what: str, text: str, expected: set[str]) -> None:
    track, version = load_track("finqa"), ModelVersion(name="v", provider="local")
    seen = [seen_error("t", what, "value_error", "no plan", text)]
    own = [rule for rule in rules._RULES if rule not in (rules._another_reading, rules._another_track)]
    assert {rule.__name__.removeprefix("_") for rule in own if rule(track, version, seen)} == expected


@pytest.mark.parametrize(
    ("stopped", "end_state", "what"),
    [("crashed", {}, "crashed"), ("crashed", {"a": None}, "ran"), ("gave_up", {}, "ran")],
)
def test_a_program_that_failed_and_changed_nothing_gave_no_answer(stopped: str, end_state: Any, what: str) -> None:
    told = {"steps": [], "ended": stopped, "why": "it ended with status 2: no file", "end_state": end_state}
    track, done = load_track("agent"), trajectory_from_json(told)
    attempt: Any = Attempt("t", 0, 0, "", Response("", stop_reason=stopped), None, done, Ran(result_of(done)))
    seen = seen_of(track, attempt)
    assert (seen.what, seen.readable) == (what, what == "ran")
    row = {"turn_id": "t", "sample": 1, "response": "{}", "artefact": json.dumps(told), "call_error": None}
    (crash,) = seen_in_rows([{**row, "error_message": None}, {**row, "sample": 0, "error_message": None}], {("t", 1)})
    assert "no file" in example(crash) and counted([crash]) == "1 × crashed"
    (hint,) = advice(track, ModelVersion(name="v", provider="command"), [crash])
    assert "options.command" in hint


def test_the_most_frequent_kind_decides() -> None:
    finqa, version = load_track("finqa"), ModelVersion(name="v", provider="openai", max_tokens=7)
    cut = [seen_call_error("t", "max_tokens", "cut off", "{", True)] * 3
    away = [seen_call_error("t", "rate_limited", "429", "", False)] * 2
    assert advice(finqa, version, cut + away) == ["raise max_tokens (it is 7), or have the model think less"]


def test_no_hint_says_more_than_was_seen() -> None:
    refused = [seen_call_error("t", "bad_request", "HTTP 400: odd", "", False)] * 2
    (hint,) = advice(load_track("finqa"), ModelVersion(name="v", provider="openai"), refused)
    assert "every" not in hint  # the others, which are not among the advised, may have been answered


@pytest.mark.parametrize(("options", "told"), [({}, False), ({"structured_output": "none"}, True)])
def test_a_schema_is_proposed_where_none_is_sent(options: dict[str, str], told: bool) -> None:
    version = ModelVersion(name="v", provider="openai", options=options)
    (hint,) = advice(load_track("finqa"), version, [seen_error("t", "unreadable", "syntax_error", "no JSON", "well")])
    assert ("options.structured_output: json_schema" in hint) is told
