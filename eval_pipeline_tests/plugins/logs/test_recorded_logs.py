"""Logs of other tools as recorded answers.

`recorded_logs/` holds what promptfoo 0.121.20 (`promptfoo eval --repeat 2 --output`, with a provider of ours) and
lm_eval 0.4.13 (`--model dummy --log_samples`, a task of two documents with `repeats: 2`) wrote, less some figures.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline_plugins.logs.promptfoo import read_promptfoo
from eval_pipeline_tests.operations.imports import imported
from eval_pipeline_tests.support import Lab

LOGS = Path(__file__).parent / "recorded_logs"
LM_EVAL = LOGS / "samples_small_2026-11-23T11-51-02.718340.jsonl"
RESULTS = LOGS / "results_2026-11-23T11-51-02.718340.json"
BY_RECORD = ("--map", "case_id=doc.record")


def told(lab: Lab, columns: str) -> list[tuple[Any, ...]]:
    """Columns of the attempts, in the order of turns and samples."""
    lab.evaluate(version="old", publish=True)
    return lab.sql(f"SELECT {columns} FROM attempts ORDER BY turn_id, sample")


def promptfoo(tmp_path: Path, change: Any) -> Path:
    """The results of promptfoo, changed."""
    raw = json.loads((LOGS / "promptfoo.json").read_text())
    change(raw)
    (tmp_path / "results.json").write_text(json.dumps(raw))
    return tmp_path / "results.json"


def answering(texts: tuple[str, ...], tmp_path: Path, **more: Any) -> Path:
    """Samples as lm_eval writes them, of the turns of `small` with these texts."""
    lines = [json.loads(line) for line in LM_EVAL.read_text().splitlines()]
    made = []
    for line, doc in zip((lines[0], lines[0], lines[1]), (("alpha", 0), ("alpha", 1), ("beta", 0)), strict=True):
        case, turn = doc
        made.append({**line, "doc": {"record": case, "turn_index": turn}, "resps": [list(texts)], **more})
    file = tmp_path / LM_EVAL.name
    file.write_text("".join(json.dumps(line) + "\n" for line in made))
    return file


def test_promptfoo_results_are_answers_with_their_origin(home: Lab) -> None:
    said = imported(home, LOGS / "promptfoo.json", form="promptfoo")
    assert "4 of 6 readable" in said
    assert "2 like this: beta#0 'API error: 500': an error was recorded instead of an answer" in said
    rows = told(
        home, "turn_id, sample, input_tokens, output_tokens, usd, latency_ms, stop_reason, asked_on, error_message"
    )
    assert rows[1] == ("small/alpha#0", 1, 11, 3, 0.001, 2.0, "stop", "2026-11-23", None)
    assert rows[4][:2] == ("small/beta#0", 0)
    assert rows[4][-1] == "recorded as an error: API error: 500"
    ((metadata,), *_) = home.sql("SELECT metadata FROM attempts WHERE metadata IS NOT NULL")
    assert json.loads(metadata)["provenance"] == {
        "model": "answers-model",
        "prompt_version": "first",
        "sampling": {"temperature": 0.3, "max_tokens": 77},
        "asked_on": "2026-11-23",
        "tool": "promptfoo 0.121.20",
    }
    assert home.one("SELECT count(*) FROM turn_results WHERE correct") == 4


def test_what_promptfoo_writes_as_lines_is_read_too(home: Lab, tmp_path: Path) -> None:
    results = json.loads((LOGS / "promptfoo.json").read_text())["results"]["results"]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(result) + "\n" for result in results))
    assert "4 of 6 readable" in imported(home, tmp_path / "results.jsonl", form="promptfoo")


def test_a_failed_assertion_of_promptfoo_is_an_answer_all_the_same(home: Lab, tmp_path: Path) -> None:
    def change(raw: Any) -> None:
        raw["results"]["results"][0] |= {"error": "Expected output to equal 51", "success": False, "failureReason": 1}

    assert "4 of 6 readable" in imported(home, promptfoo(tmp_path, change), form="promptfoo")


def test_answers_from_the_cache_of_promptfoo_have_no_latency(home: Lab, tmp_path: Path) -> None:
    def change(raw: Any) -> None:
        raw["results"]["results"][0]["response"] |= {"cached": True, "tokenUsage": {"cached": 14, "total": 14}}

    imported(home, promptfoo(tmp_path, change), form="promptfoo")
    assert told(home, "latency_ms, input_tokens")[:2] == [(None, None), (2.0, 11)]


def test_keys_in_the_configuration_of_promptfoo_are_not_taken_over(home: Lab, tmp_path: Path) -> None:
    def change(raw: Any) -> None:
        raw["config"]["providers"][0]["config"]["apiKey"] = "sk-secret"

    imported(home, promptfoo(tmp_path, change), form="promptfoo")
    assert "sk-secret" not in home.home.imported_model_versions.read_text()


@pytest.mark.always
def test_a_log_of_several_models_is_several_model_versions(home: Lab, tmp_path: Path) -> None:
    def change(raw: Any) -> None:
        for result in raw["results"]["results"][1::2]:
            result["provider"] = {"id": "other-model", "label": ""}

    file = promptfoo(tmp_path, change)
    said = imported(home, file, form="promptfoo", code=2)
    assert "the log has answers of 2 models; import one of them at a time" in said
    assert "--only 'model=other-model'" in said
    assert "3 predictions imported" in imported(home, file, "--only", "model=other-model", form="promptfoo")


@pytest.mark.parametrize(
    ("text", "field"),
    [("{}", "results.results"), ('{"results": {"results": [{}]}}', "results.0"), ("[", "is not JSON")],
)
def test_what_is_not_of_promptfoo_is_told(home: Lab, tmp_path: Path, text: str, field: str) -> None:
    (tmp_path / "wrong.json").write_text(text)
    said = imported(home, tmp_path / "wrong.json", form="promptfoo", code=2)
    assert "wrong.json" in said
    assert field in said


def test_samples_of_lm_eval_are_answers_with_their_origin(home: Lab, tmp_path: Path) -> None:
    shutil.copy(RESULTS, tmp_path)
    file = answering(('{"calculation": "25 + 25"}', '{"calculation": "1"}'), tmp_path)
    said = imported(home, file, *BY_RECORD, form="lm-eval")
    assert "6 of 6 readable" in said
    assert "model that answered: qdpv68r5" in said
    assert told(home, "turn_id, sample, asked_on")[:2] == [("small/alpha#0", n, "2026-11-23") for n in (0, 1)]
    ((metadata,), *_) = home.sql("SELECT metadata FROM attempts")
    found = json.loads(metadata)["provenance"]
    assert (found["tool"], found["prompt_version"]) == ("lm_eval 0.4.13", "small, version Yaml")
    assert found["sampling"] == {"until": ["\n\n"], "do_sample": True, "temperature": 0.4, "max_gen_toks": 55}
    assert home.one("SELECT count(*) FROM turn_results WHERE correct") == 1
    assert home.one("SELECT count(*) FROM prompts WHERE text = 'Compute 50'") == 1


def test_a_document_of_several_filters_is_read_once_and_without_results_the_model_is_unknown(
    home: Lab, tmp_path: Path
) -> None:
    file = answering(('{"calculation": "50"}',), tmp_path)
    text = file.read_text()
    file.write_text(text + text.replace('"filter": "all"', '"filter": "strict"'))
    said = imported(home, file, *BY_RECORD, form="lm-eval")
    assert "3 predictions imported" in said
    assert "unknown, and shown as that: model that answered" in said


def test_one_log_likelihood_is_no_answer(home: Lab, tmp_path: Path) -> None:
    file = answering((), tmp_path, resps=[[["-3.1", "False"]], [["-0.2", "True"]]])
    said = imported(home, file, *BY_RECORD, form="lm-eval", code=2)
    assert "resps: expected one list of texts, or a log-likelihood for each choice" in said


def test_a_log_that_names_no_case_says_how_to(home: Lab) -> None:
    said = imported(home, LM_EVAL, form="lm-eval", code=2)
    assert "the suite knows none of doc_id '0': --map case_id=FIELD" in said
    assert said.count("doc 0") == 1, "a document with two answers is told once"
    said = imported(home, LM_EVAL, "--map", "case_id=doc.record_id", form="lm-eval", code=2)
    assert "case 'alpha' has 2 turns, and which one this answers is not told: --map turn_index=FIELD" in said


def test_a_log_that_is_not_there_is_told(home: Lab) -> None:
    assert "no file /nowhere.eval" in imported(home, Path("/nowhere.eval"), form="inspect", code=2)


@pytest.mark.parametrize(
    ("checks", "right"),
    [
        ([{"type": "icontains", "value": "Oslo"}], ("Oslo",)),
        ([{"type": "contains-any", "value": ["Oslo", "Christiania"]}], ("Oslo", "Christiania")),
        ([{"type": "contains", "value": "Os"}, {"type": "equals", "value": "Oslo"}], ("Oslo",)),
        ([{"type": "contains", "value": "Os"}, {"type": "contains", "value": "lo"}], ()),
    ],
)
def test_what_an_assertion_of_promptfoo_wants_is_right(tmp_path: Path, checks: Any, right: Any) -> None:
    def change(raw: Any) -> None:
        raw["results"]["results"][0]["testCase"]["assert"] = checks

    first = next(iter(read_promptfoo(promptfoo(tmp_path, change))))
    assert first.task is not None and first.task.expected == right
