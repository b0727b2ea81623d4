"""Small evaluations by the real packages of peers, installed apart, against an endpoint: each gives its log."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ASKED = {
    "What is the capital of Norway?": ("Oslo", "Oslo"),
    "What is the capital of Chile?": ("Santiago", "It is Lima."),
    "What is the capital of Kenya?": ("Nairobi", "The capital is Nairobi."),
    "What is the capital of Peru?": ("Lima", "lima"),
}
"""Question → right answer, and what the endpoint answers."""
MODEL = "gpt-fake"
_INSPECT = """
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match

samples = [Sample(input=asked, target=right) for asked, (right, _) in {asked!r}.items()]
task = Task(dataset=samples, scorer=match(), name="capitals")
eval(task, model="openai-api/fake/{model}", display="none")
"""
_DEEPEVAL = """
import openai
from deepeval import evaluate
from deepeval.metrics import ExactMatchMetric
from deepeval.test_case import LLMTestCase

client = openai.OpenAI(base_url="{url}", api_key="sk-fake")

def ask(asked):
    told = client.chat.completions.create(model="{model}", messages=[dict(role="user", content=asked)])
    return told.choices[0].message.content

cases = [
    LLMTestCase(input=asked, expected_output=right, actual_output=ask(asked))
    for asked, (right, _) in {asked!r}.items()
]
evaluate(cases, [ExactMatchMetric()], hyperparameters=dict(model="{model}"))
"""


def said(prompt: str) -> str:
    """What the endpoint answers to a prompt that ends with a question."""
    return next(answer for question, (_, answer) in ASKED.items() if prompt.rstrip().endswith(question))


def run(folder: Path, *command: str | Path, **environment: str) -> None:
    """Runs a program in a folder, in silence."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("INSPECT_", "OPENAI_"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder, env=kept | environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def venv(tools: Path, name: str, *packages: str) -> Path:
    """The Python of an environment with these packages, made unless it is there."""
    folder = tools / name
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        run(tools, sys.executable, "-m", "venv", folder)
        run(tools, folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
        (folder / "ready").touch()
    return folder / "bin/python"


def inspect(tools: Path, work: Path, url: str) -> Path:
    """A log of Inspect, scored by `match`: the end of the answer must be the target."""
    (work / "task.py").write_text(_INSPECT.format(asked=ASKED, model=MODEL))
    python = venv(tools, "inspect", "inspect-ai", "openai")
    run(work, python, "task.py", FAKE_BASE_URL=url, FAKE_API_KEY="sk-fake", INSPECT_LOG_DIR=str(work / "logs"))
    (log,) = (work / "logs").glob("*.eval")
    return log


def lm_eval(tools: Path, work: Path, url: str) -> Path:
    """Samples of lm-eval, scored by `exact_match`, which ignores case."""
    lines = [json.dumps({"question": q, "answer": right}) + "\n" for q, (right, _) in ASKED.items()]
    (work / "asked.jsonl").write_text("".join(lines))
    task = {
        "task": "capitals",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(work / "asked.jsonl")}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "metric_list": [
            {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, "ignore_case": True},
        ],
    }
    (work / "capitals.yaml").write_text(json.dumps(task))
    python = venv(tools, "lm-eval", "lm-eval[api]")
    arguments = f"model={MODEL},base_url={url}/chat/completions,num_concurrent=1,tokenized_requests=False"
    run(
        work, python, "-m", "lm_eval", "--model", "local-chat-completions", "--model_args", arguments,
        "--tasks", "capitals", "--include_path", work, "--apply_chat_template",
        "--log_samples", "--output_path", work / "out",
        OPENAI_API_KEY="sk-fake", HF_HOME=str(work / "hf"), HF_HUB_OFFLINE="1",
    )  # fmt: skip
    (log,) = (work / "out").rglob("samples_*.jsonl")
    return log


def promptfoo(tools: Path, work: Path, url: str) -> Path:
    """Results of promptfoo, scored by `icontains`."""
    if not (tools / "promptfoo/ready").exists():
        (tools / "promptfoo").mkdir(exist_ok=True)
        run(tools / "promptfoo", "npm", "install", "--no-audit", "--no-fund", "promptfoo")
        (tools / "promptfoo/ready").touch()
    config = {
        "prompts": ["{{question}}"],
        "providers": [{"id": f"openai:chat:{MODEL}", "config": {"apiBaseUrl": url, "apiKey": "sk-fake"}}],
        "tests": [
            {"vars": {"question": q}, "assert": [{"type": "icontains", "value": right}]}
            for q, (right, _) in ASKED.items()
        ],
    }
    (work / "config.json").write_text(json.dumps(config))
    command = (
        "eval",
        "--config",
        work / "config.json",
        "--output",
        work / "results.json",
        "--no-cache",
        "--no-progress-bar",
    )
    switches = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    # It ends with 100 where an assertion fails.
    run(
        work, tools / "promptfoo/node_modules/.bin/promptfoo", *command,
        PROMPTFOO_FAILED_TEST_EXIT_CODE="0", PROMPTFOO_CONFIG_DIR=str(work / "home"), **switches,
    )  # fmt: skip
    return work / "results.json"


def deepeval(tools: Path, work: Path, url: str) -> Path:
    """A test run of DeepEval, scored by its exact match."""
    (work / "run.py").write_text(_DEEPEVAL.format(asked=ASKED, model=MODEL, url=url))
    python = venv(tools, "deepeval", "deepeval")
    run(work, python, "run.py", DEEPEVAL_TELEMETRY_OPT_OUT="YES", DEEPEVAL_DISABLE_PROGRESS_BAR="YES")
    return work / ".deepeval/.latest_test_run.json"


Tool = Callable[[Path, Path, str], Path]
TOOLS: Mapping[str, tuple[Tool, Sequence[bool]]] = {
    # With the verdict of its rule on each answer, in the order of the questions.
    "inspect": (inspect, (True, False, True, True)),
    "lm-eval": (lm_eval, (True, False, False, True)),
    "promptfoo": (promptfoo, (True, False, True, True)),
    "deepeval": (deepeval, (True, False, False, False)),
}
