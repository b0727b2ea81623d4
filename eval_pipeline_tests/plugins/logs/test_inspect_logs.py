"""Logs that the real inspect-ai made with its mock model, imported, evaluated, exported and read back by it."""

import json
import multiprocessing
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zipfile import ZipFile

import pytest

from eval_pipeline.core.reading import arms_length
from eval_pipeline_plugins.logs.inspect import read_inspect
from eval_pipeline_tests.fakes import inspect_task
from eval_pipeline_tests.operations import imports
from eval_pipeline_tests.support import Lab, built_once

# Not imported here: collecting all tests would take a sixth longer.
pytestmark = pytest.mark.skipif(find_spec("inspect_ai") is None, reason="needs the extra `inspect`")


def read(file: Path) -> Any:
    """A log, as inspect-ai reads it."""
    from inspect_ai.log import read_eval_log

    return read_eval_log(str(file))


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what `inspect_task` logs."""
    return built_once(tmp_path_factory, "inspect-logs", log_all)


def log_all(folder: Path) -> None:
    """In a child of this process, which has the import of inspect-ai done."""
    import inspect_ai  # noqa: F401

    environment = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_")}
    with patch.dict(os.environ, environment, clear=True):
        child = multiprocessing.get_context("fork").Process(target=inspect_task.main, args=(str(folder),))
        child.start()
    child.join(200)
    assert child.exitcode == 0


@pytest.fixture
def broken(logs: Path) -> Path:
    """Three samples in two epochs, of which the first two are answered: rightly, then wrongly."""
    (file,) = logs.glob("broken/*.eval")
    return file


@pytest.fixture
def conversation(logs: Path) -> Path:
    """One sample of two turns."""
    (file,) = logs.glob("conversation/*.json")
    return file


@pytest.fixture
def home(home: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Logs are read in this process: importing inspect-ai takes most of the time."""

    def here(command: object, asked: bytes, *_: object) -> tuple[list[Any], int, bool]:
        module, name, arguments, _names = json.loads(asked)
        return [arms_length._outcome(getattr(import_module(module), name), arguments)], 0, False

    monkeypatch.setattr(arms_length, "_run", here)
    return home


def imported(lab: Lab, file: Path, name: str = "mock", *options: str, code: int = 0) -> str:
    return imports.imported(lab, file, *options, form="inspect", name=name, code=code)


def test_samples_are_answers_epochs_samples_and_errors_none(home: Lab, broken: Path) -> None:
    said = imported(home, broken)
    assert "4 of 6 readable" in said
    assert "2 like this: beta#0 'RuntimeError('the endpoint broke')': an error was recorded" in said
    home.evaluate(version="mock", publish=True)
    columns = "turn_id, sample, input_tokens, output_tokens, cache_read_tokens, stop_reason, asked_on, error_message"
    rows = home.sql(f"SELECT {columns} FROM attempts ORDER BY turn_id, sample")
    # Inspect counts the 3 tokens from the cache apart from the 20.
    assert rows[0] == ("small/alpha#0", 0, 23, 5, 3, "stop", read(broken).samples[0].started_at[:10], None)
    assert rows[-1][-1].startswith("recorded as an error: RuntimeError('the endpoint broke')")
    right = home.sql("SELECT turn_id, sample FROM turn_results WHERE correct ORDER BY 1")
    assert right == [("small/alpha#0", 0), ("small/alpha#1", 0)]
    ((prompt, details),) = home.sql(
        "SELECT text, details FROM explain_turn('small/alpha#1', 'mock') WHERE kind = 'prompt' AND sample = 0"
    )
    assert prompt == "[system]\nYou compute.\n\n[user]\nCompute 50 + 7"
    told = json.loads(details)
    assert told["model"] == "mockllm/model"
    assert told["sampling"] == {"max_tokens": 99, "temperature": 0.2}
    assert told["tool"].startswith("inspect_ai ")


def test_logs_in_json_are_read_too_and_conversations_turn_by_turn(home: Lab, conversation: Path) -> None:
    assert "2 of 2 readable" in imported(home, conversation)
    home.evaluate(version="mock")
    rows = home.sql("SELECT turn_id, response FROM attempts WHERE response IS NOT NULL ORDER BY turn_id")
    assert rows == [("small/alpha#0", '{"calculation": "50"}'), ("small/alpha#1", '{"calculation": "50 + 7"}')]


@pytest.mark.always
def test_other_fields_are_mapped_and_a_damaged_log_is_one_sentence(home: Lab, broken: Path, tmp_path: Path) -> None:
    said = imported(home, broken, "mapped", "--map", "turn_id=id", code=2)
    assert "the suite has no turn 'alpha-0'; did you mean 'alpha#0'?" in said
    assert "4 of 6" in imported(home, broken, "mapped", "--map", "case_id=metadata.case_id")
    whole = broken.read_bytes()
    for data in (whole[: len(whole) // 2], b"nothing"):
        (tmp_path / "damaged.eval").write_bytes(data)
        assert "damaged.eval: cannot be read" in imported(home, tmp_path / "damaged.eval", code=2)


def scores_of(lab: Lab, version: str) -> dict[tuple[str, int], dict[str, float | str]]:
    """The metrics on record, of each turn and epoch."""
    found: dict[tuple[str, int], dict[str, float | str]] = {}
    columns, whose = "case_id || '#' || turn_index, sample", f"WHERE model_version = '{version}'"
    query = f"SELECT {columns}, metric, value, label FROM metrics {whose}"
    for turn, sample, metric, value, label in lab.sql(query):
        if label is not None or value is not None:
            found.setdefault((turn, sample + 1), {})[metric] = value if label is None else label
    for turn, sample, correct in lab.sql(f"SELECT {columns}, correct FROM turn_results {whose}"):
        found[turn, sample + 1]["correct"] = "C" if correct else "I"
    return found


def test_an_exported_evaluation_has_equal_scores_when_inspect_reads_it_back_and_is_imported_again(
    home: Lab, broken: Path, tmp_path: Path
) -> None:
    imported(home, broken)
    home.evaluate(version="mock", publish=True)
    overall = dict(home.sql("SELECT metric, mean FROM statistics WHERE split = 'all' AND mean IS NOT NULL"))
    assert overall["correct"] == pytest.approx(1 / 3)
    for file in (tmp_path / "log.eval", tmp_path / "log.json"):
        said = home.cli("export", "inspect", "--suite", "small", "--model-version", "mock", "-o", str(file))
        assert said.code == 0, said.text
        assert "6 samples written" in said.out
        log = read(file)
        assert (log.status, log.eval.model, log.eval.task) == ("success", "mockllm/model", "small")
        assert log.eval.model_generate_config.temperature == 0.2
        assert log.eval.config.epochs == 2
        scored = {
            (sample.id, sample.epoch): {
                name: score.value
                for name, score in sample.scores.items()
                if score.value == score.value  # not NaN
            }
            for sample in log.samples
        }
        assert scored == scores_of(home, "mock")
        means = {score.name: next(iter(score.metrics.values())).value for score in log.results.scores}
        assert "correct" in means
        assert {name: overall[name] for name in means} == means
        first = log.samples[0]
        assert [message.role for message in first.messages] == ["system", "user", "assistant"]
        assert first.messages[1].text == "Compute 50"
        usage = first.output.usage
        assert (usage.input_tokens, usage.input_tokens_cache_read, usage.output_tokens) == (20, 3, 5)

    assert "4 of 6 readable" in imported(home, tmp_path / "log.eval", "again")
    home.evaluate(version="again", publish=True)
    first, second = (
        home.sql(f"SELECT turn_id, sample, correct, tokens FROM turn_results WHERE model_version = '{v}' ORDER BY 1, 2")
        for v in ("mock", "again")
    )
    assert first == second


@pytest.mark.always
def test_models_that_were_asked_are_exported_with_their_prompts_and_what_is_not_on_record_is_not(
    small: Lab, tmp_path: Path
) -> None:
    header = small.home.data / "suites" / "small" / "suite.yaml"
    header.write_text(f"{header.read_text()}description: Sums of two numbers.\n")
    small.evaluate()
    said = small.cli("export", "inspect", "--suite", "small", "--model-version", "puppet", "-o", str(tmp_path))
    assert said.code == 0, said.text
    (file,) = tmp_path.glob("*.eval")
    assert file.name == "2026-03-01T00-00-00-00-00_small_puppet.eval"
    log = read(file)
    assert "alpha 1?" in log.samples[1].messages[-2].text
    assert (log.eval.model, log.eval.task_description) == ("puppet", "Sums of two numbers.")
    for options, told in (
        (("nobody",), "the record has no evaluation of 'nobody' on 'small'"),
        (("puppet", "--eval-date", "2020-01-01"), "on 'small' of 2020-01-01"),
    ):
        said = small.cli("export", "inspect", "--suite", "small", "--model-version", *options)
        assert (said.code, told in said.text) == (2, True), said.text


def test_a_prompt_that_nobody_told_is_not_invented(home: Lab, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"case_id": "beta", "turn_index": 0, "answer": "0.84"}\n')
    home.cli("import", "predictions", str(rows), "--suite", "small", "--model-version", "old")
    home.evaluate(version="old")
    home.cli("export", "inspect", "--suite", "small", "--model-version", "old", "-o", str(tmp_path / "a.json"))
    log = read(tmp_path / "a.json")
    asked = next(sample for sample in log.samples if sample.id == "beta#0").messages[0]
    assert (asked.text, asked.metadata) == ("beta 0?", {"prompt": "unknown", "shown_here": "the suite's question"})
    assert log.eval.model == "unknown"
    assert log.eval.model_generate_config.max_tokens is None


def test_a_log_that_does_not_list_its_samples_is_read(home: Lab, broken: Path, tmp_path: Path) -> None:
    from inspect_ai.log import write_eval_log

    whole = imported(home, broken, "listed")
    listed = (home.home.predictions / "listed" / "small.jsonl").read_text()
    for suffix in ("json", "eval"):
        old = tmp_path / f"old.{suffix}"
        write_eval_log(read(broken), str(old))
        _forget_ids(old)
        assert imported(home, old, suffix).splitlines()[1:3] == whole.splitlines()[1:3]
        unlisted = (home.home.predictions / suffix / "small.jsonl").read_text()
        assert sorted(unlisted.splitlines()) == sorted(listed.splitlines())


def _forget_ids(log: Path) -> None:
    """Takes the list of samples out of a log, which old versions did not write."""
    if log.suffix == ".json":
        told = json.loads(log.read_text())
        del told["eval"]["dataset"]["sample_ids"]
        log.write_text(json.dumps(told))
        return
    with ZipFile(log) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    for name in ("header.json", "_journal/start.json"):
        told = json.loads(files[name])
        del told["eval"]["dataset"]["sample_ids"]
        files[name] = json.dumps(told).encode()
    with ZipFile(log, "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)


def test_a_real_agent_is_an_attempt_with_its_tools_and_its_answer(logs: Path) -> None:
    entries = [entry for file in logs.glob("agent/*.json") for entry in read_inspect(file)]
    found = {str(entry.found["id"]): entry.given["trajectory"] for entry in entries}
    steps = {
        name: [
            (one.get("name", "model"), one.get("result", one.get("text")), one.get("error_class"))
            for one in did["steps"]
        ]
        for name, did in found.items()
    }
    ada = [("model", "", None), ("spent", "40.5", None)]
    assert steps == {
        "submits": [
            ("model", "Eve?", None),
            ("spent", "there is no customer 'Eve'", "other_error"),
            *ada,
            ("model", "40.5", None),
            ("answer", "", None),
        ],
        "says": [*ada, ("model", "It is 40.5.", None), ("answer", "", None)],
        "repeats": 3 * ada,
    }
    assert {name: (one["answer"], one["ended"], one["end_state"]) for name, one in found.items()} == {
        "submits": ("40.5", "answered", None),
        "says": ("It is 40.5.", "answered", None),
        "repeats": (None, "model_calls", None),
    }
    tokens = {str(entry.found["id"]): entry.given["input_tokens"] for entry in entries}
    assert tokens == {"submits": 90, "says": 60, "repeats": 90}
