"""What a recorded model never saw is never shown: what was told of it is, or that it is unknown."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.model import Response
from eval_pipeline.operations.runs.evaluations import evaluation_of
from eval_pipeline.providers.base import Call
from eval_pipeline.providers.standins.recorded import RecordedProvider
from eval_pipeline.reports.contents.facts import facts
from eval_pipeline.reports.files.statistics_json import statistics
from eval_pipeline.reports.files.traces import traces
from eval_pipeline_tests.operations.imports import imported
from eval_pipeline_tests.support import DAY, Lab

ROWS: tuple[dict[str, Any], ...] = (
    {"case_id": "alpha", "turn_index": 0, "answer": "50"},
    {"case_id": "alpha", "turn_index": 1, "answer": "57", "calculation": "50 + 7"},
    {"case_id": "beta", "turn_index": 0, "answer": "0.84"},
)
TOLD = ("--model", "gpt-5", "--prompt-version", "v3", "--history", "own", "--sampling", "temperature=0.3")
TOLD += ("--sampling", "max_tokens=512", "--asked-on", "2026-02-28", "--tool", "our notebook")


def attempts(lab: Lab) -> list[dict[str, Any]]:
    """The attempts in the traces."""
    told = traces(evaluation_of(lab.workspace(), "small", "old", DAY))
    return [attempt for _, trace in told for turn in trace["turns"] for attempt in turn["attempts"]]


def page_facts(lab: Lab) -> dict[str, str]:
    return dict(facts(evaluation_of(lab.workspace(), "small", "old", DAY)))


def explained(lab: Lab) -> tuple[str, dict[str, Any]]:
    """Text and details of the prompt of a turn."""
    query = "SELECT text, details FROM explain_turn('small/alpha#1', 'old') WHERE kind = 'prompt'"
    ((text, details),) = lab.sql(query)
    return text, json.loads(details)


def test_what_is_told_is_shown_everywhere(home: Lab, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("Answer with a number.")
    priced = ("--price", "input=3", "--price", "output=15")
    imported(home, ROWS, *TOLD, "--prompt-file", str(tmp_path / "prompt.txt"), *priced)
    home.evaluate(version="old", publish=True)
    text, details = explained(home)
    assert text == "Answer with a number."
    assert details["model"] == "gpt-5"
    assert details["sampling"] == {"temperature": 0.3, "max_tokens": 512}
    assert (details["history"], details["asked_on"], details["tool"]) == ("own", "2026-02-28", "our notebook")
    (first, *_) = attempts(home)
    assert first["prompt"] == "Answer with a number."
    assert first["provenance"]["prompt_version"] == "v3"
    assert first["asked_on"] == "2026-02-28"
    shown = page_facts(home)
    assert shown["Model that answered"] == "gpt-5"
    assert shown["Prompt it was shown"] == "version v3, its text is with each answer"
    assert shown["Sampling"] == "max_tokens 512, temperature 0.3"
    assert '"input": 3.0' in shown["Settings"]
    told = statistics(evaluation_of(home.workspace(), "small", "old", DAY))["provenance"]
    assert (told["model"], told["asked_on"]) == ("gpt-5", "2026-02-28")


def test_what_nobody_told_is_unknown_and_never_ours(home: Lab) -> None:
    said = imported(home, ROWS[:2])  # a turn without an answer was shown nothing of ours either
    assert "unknown, and shown as that: model that answered, prompt it was shown" in said
    home.evaluate(version="old", publish=True)
    text, details = explained(home)
    assert text == "unknown"
    details_of = ("model", "history", "sampling", "asked_on", "tool")
    assert {details[name] for name in details_of} == {"unknown"}
    assert home.sql("SELECT DISTINCT asked_on FROM attempts") == [(None,)]
    assert len(attempts(home)) == 3
    for attempt in attempts(home):
        assert attempt["prompt"] == "unknown"
        assert set(attempt["provenance"].values()) == {"unknown"}
    shown = page_facts(home)
    names = ("Model that answered", "Prompt it was shown", "History it was shown", "Sampling", "Answered on")
    assert {shown[name] for name in names} == {"unknown"}
    assert not {"max_tokens", "history", "concurrency", "deadline_s"} & set(shown["Settings"].split())
    ((settings,),) = home.sql("SELECT settings FROM model_versions WHERE model_version = 'old'")
    assert not {"max_tokens", "history", "prompt", "sampling"} & json.loads(settings).keys()
    assert home.one("SELECT count(*) FROM prompts WHERE text <> 'unknown'") == 0


def test_evaluations_recorded_before_do_not_show_our_prompt(home: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older version recorded the prompt that it would have sent, and said nothing of where answers come from."""
    answer = RecordedProvider.answer

    def answered(self: RecordedProvider, call: Call) -> Response:
        found = answer(self, call)
        return Response(found.text, found.stop_reason, found.usage, found.latency_ms, asked_on="2026-03-01")

    monkeypatch.setattr(RecordedProvider, "answer", answered)
    monkeypatch.setattr(RecordedProvider, "prompt_shown", lambda self, call: None)
    imported(home, ROWS, "--model", "gpt-5")
    home.evaluate(version="old", publish=True)
    assert home.one("SELECT count(*) FROM prompts WHERE text <> 'unknown'") > 0
    text, details = explained(home)
    assert (text, details["asked_on"], details["model"]) == ("unknown", "unknown", "unknown")
    assert {(attempt["prompt"], attempt["asked_on"]) for attempt in attempts(home)} == {("unknown", None)}


def test_models_that_were_asked_show_their_prompt_as_before(small: Lab) -> None:
    small.evaluate(publish=True)
    query = "SELECT text, details FROM explain_turn('small/alpha#1', 'puppet') WHERE kind = 'prompt'"
    ((text, details),) = small.sql(query)
    assert "alpha 1?" in text
    assert set(json.loads(details)) == {"eval_date", "identity_hash", "asked_on"}


def test_rows_may_differ_in_what_they_tell_and_go_before_options(home: Lab) -> None:
    rows = [{**row, "temperature": 0, **more} for row, more in zip(ROWS, ({"model": "x"}, {}, {}), strict=True)]
    said = imported(home, rows, "--tool", "a notebook", "--model", "y")
    assert "model that answered: differs from answer to answer" in said
    home.evaluate(version="old")
    assert [attempt["provenance"]["model"] for attempt in attempts(home)] == ["x", "y", "y"]
    assert {str(attempt["provenance"]["sampling"]) for attempt in attempts(home)} == {"{'temperature': 0.0}"}
    assert page_facts(home)["Sampling"] == "temperature 0.0"


def test_importing_again_takes_over_what_is_told_then(home: Lab) -> None:
    imported(home, ROWS)
    home.evaluate(version="old")
    before = home.inputs(version="old").version.predictions["small"].content_hash
    imported(home, ROWS, *TOLD)
    assert home.inputs(version="old").version.predictions["small"].content_hash == before
    home.evaluate(version="old", publish=True)
    assert explained(home)[1]["model"] == "gpt-5"
    assert page_facts(home)["Model that answered"] == "gpt-5"


def test_an_answer_cut_off_or_withheld_is_none(home: Lab) -> None:
    rows = (ROWS[0], {**ROWS[1], "stop_reason": "length"}, {**ROWS[2], "error": "HTTP 500"})
    said = imported(home, rows)
    assert "1 of 3 readable" in said
    assert "HTTP 500" in said
    home.evaluate(version="old", upto="recovery_attempts")
    found = home.sql("SELECT call_error, error_message FROM attempts ORDER BY turn_id")
    assert found[0] == (None, None)
    assert found[1][0] == "max_tokens"
    assert found[2] == ("recorded_error", "recorded as an error: HTTP 500")


def test_dollars_and_tokens_from_the_cache_count_as_they_are_told(home: Lab) -> None:
    tokens = {"input_tokens": 1000, "output_tokens": 100, "cache_read_tokens": 400, "asked_on": "2026-02-01T10:00:00Z"}
    imported(home, ({**ROWS[0], "usd": 0.5}, {**ROWS[1], **tokens}), "--price", "input=1", "--price", "output=10")
    home.evaluate(version="old", upto="recovery_attempts")
    found = home.sql(
        "SELECT usd, cache_read_tokens, asked_on FROM attempts WHERE response IS NOT NULL ORDER BY turn_id"
    )
    assert found == [(0.5, 0, None), (pytest.approx(0.002), 400, "2026-02-01")]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--asked-on", "2026-02-30"), "--asked-on: expected a date such as 2026-01-31, found '2026-02-30'"),
        (("--sampling", "temperature"), "--sampling 'temperature': expected NAME=VALUE"),
        (("--price", "input=3"), "--price output: is missing"),
        (("--prompt-file", "/nowhere.txt"), "/nowhere.txt: the prompt cannot be read"),
        (("--only", "modell=x"), "'modell' is not a known field; did you mean 'model'?"),
    ],
)
def test_wrong_options_are_one_sentence(home: Lab, options: tuple[str, ...], told: str) -> None:
    assert told in imported(home, ROWS, *options, code=2)
    assert "old" not in home.workspace().model_versions
