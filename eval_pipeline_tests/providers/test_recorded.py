import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.ids import file_hash, text_hash
from eval_pipeline.core.model import CallErrorKind, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, CallError, Environment, FatalCallError
from eval_pipeline.providers.standins.recorded import RecordedProvider, call_error_of, read_predictions
from eval_pipeline.providers.validation import SettingsError
from eval_pipeline_tests.fakes.scripted import make_call

ROW = {"case_id": "case", "turn_index": 0, "text": "42", "input_tokens": 10, "output_tokens": 2, "latency_ms": 1.5}
UNTOLD: dict[str, Any] = {"provenance": {}}
"""Of an answer whose origin nobody told."""


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def make_provider(folder: Path, **predictions: str) -> RecordedProvider:
    """Files of predictions as they are, or with the one row `ROW` where they are not there yet."""

    def hash_of(file: str) -> str:
        return file_hash(folder / file) if (folder / file).exists() else text_hash(json.dumps(ROW) + "\n")

    files = {suite: {"file": file, "content_hash": hash_of(file)} for suite, file in predictions.items()}
    version = ModelVersion.model_validate({"name": "r", "provider": "recorded", "predictions": files})
    return RecordedProvider(version, Environment(str(folder)))


def ask(provider: RecordedProvider, call: Call) -> Response:
    return asyncio.run(provider.generate(call))


def test_rows_are_found_by_case_turn_and_sample(tmp_path: Path) -> None:
    second = {**ROW, "text": "43\u2028", "sample": 1}
    third = {"case_id": "case", "turn_index": 1, "text": "", "input_tokens": None}
    write(tmp_path / "p.jsonl", ROW, second, third)
    provider = make_provider(tmp_path, suite="p.jsonl")
    assert ask(provider, make_call()) == Response("42", "recorded", Usage(10, 2), 1.5, metadata=UNTOLD)
    assert ask(provider, make_call(sample=1)).text == "43\u2028"
    assert ask(provider, make_call(1)) == Response("", "recorded", Usage(None, None), metadata=UNTOLD)


@pytest.mark.parametrize("call", [make_call(1), make_call(sample=1), make_call(number=1), make_call(case="other")])
def test_what_is_not_recorded_cannot_be_asked(tmp_path: Path, call: Call) -> None:
    write(tmp_path / "p.jsonl", ROW)
    provider = make_provider(tmp_path, suite="p.jsonl")
    provider.request(call)
    with pytest.raises(CallError) as caught:
        ask(provider, call)
    assert caught.value.kind == CallErrorKind.NO_PREDICTION
    assert not caught.value.retryable


def test_a_changed_row_is_a_new_request(tmp_path: Path) -> None:
    write(tmp_path / "p.jsonl", ROW, {**ROW, "turn_index": 1})
    write(tmp_path / "q.jsonl", {**ROW, "text": "43"}, {**ROW, "turn_index": 1})
    before, after = make_provider(tmp_path, suite="p.jsonl"), make_provider(tmp_path, suite="q.jsonl")
    assert before.request(make_call()) != after.request(make_call())
    assert before.request(make_call(1)) == after.request(make_call(1))


def test_the_file_is_read_when_first_asked_for_and_once(tmp_path: Path) -> None:
    provider = make_provider(tmp_path, suite="p.jsonl")  # not there yet
    write(tmp_path / "p.jsonl", ROW)
    assert ask(provider, make_call()).text == "42"
    (tmp_path / "p.jsonl").unlink()
    assert ask(provider, make_call()).text == "42"


def test_a_suite_without_predictions_and_a_lost_file_are_told(tmp_path: Path) -> None:
    with pytest.raises(FatalCallError, match=r"no predictions for the suite 'suite'.*it has: other"):
        make_provider(tmp_path, other="p.jsonl").request(make_call())
    with pytest.raises(InputError, match=r"gone\.jsonl: the file of predictions is gone"):
        make_provider(tmp_path, suite="gone.jsonl").request(make_call())


def test_every_malformed_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    lines = [json.dumps(ROW), "", "{nope", '{"case_id": 3, "turn_index": -1, "text": "x"}', "[1]", json.dumps(ROW)]
    path.write_text("\n".join(lines))
    with pytest.raises(InputError) as caught:
        read_predictions(path)
    told = [(problem.line, problem.field) for problem in caught.value.problems]
    assert told == [(3, ""), (4, "case_id"), (4, "turn_index"), (5, ""), (6, "")]
    assert "a second prediction of case 'case', turn 0, sample 0" in str(caught.value)


@pytest.mark.parametrize("fields", [{}, {"predictions": {"s": {"file": "f", "content_hash": ""}}, "options": {"a": 1}}])
def test_wrong_settings_are_refused(fields: dict[str, Any]) -> None:
    version = ModelVersion.model_validate({"name": "r", "provider": "recorded", **fields})
    with pytest.raises(SettingsError, match=r"model version 'r': (predictions: is missing|options: means nothing)"):
        RecordedProvider(version, Environment())


def test_a_file_edited_since_its_import_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "p.jsonl", ROW)
    provider = make_provider(tmp_path, suite="p.jsonl")
    write(tmp_path / "p.jsonl", {**ROW, "text": "43"})
    with pytest.raises(InputError, match=r"p\.jsonl: was changed since it was imported.* under another name"):
        provider.request(make_call())


@pytest.mark.parametrize(
    ("stop_reason", "expected"),
    [
        ("max_tokens", CallErrorKind.MAX_TOKENS),  # Anthropic
        ("length", CallErrorKind.MAX_TOKENS),  # OpenAI, lm-eval
        ("model_length", CallErrorKind.MAX_TOKENS),  # Inspect: the context window was full
        ("refusal", CallErrorKind.REFUSED),
        ("content_filter", CallErrorKind.REFUSED),
        ("stop", None),
        ("end_turn", None),
        (None, None),
    ],
)
def test_why_a_response_is_no_answer_is_told_by_its_stop_reason(
    stop_reason: str | None, expected: CallErrorKind | None
) -> None:
    assert call_error_of(stop_reason) == expected
