"""Which prompt is better? Prompts as an axis, with a model whose answers depend on the text of the prompt."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.covering.suite_prompts import SuitePrompt
from eval_pipeline.suites.cases import SuiteReading
from eval_pipeline.suites.headers import SuiteSource, find_suites
from eval_pipeline_tests.fakes.openai_server import OpenAIServer
from eval_pipeline_tests.support import ROOT, SHIPPED, Lab, Puppet

CASES = [
    {"id": f"c{place}", "question": f"{place} + {place}?", "answer": 2 * place, "fields": {"page": place}}
    for place in range(1, 5)
]
SUITE: dict[str, Any] = {"track": "text", "options": {"answer": {"form": "number"}}}
PROMPTS = {"steps": {"instructions": "Think step by step."}, "bare": {"template": [{"user": "{{ question }}"}]}}


def adds_up(prompt: str) -> str:
    """Answers rightly if asked to think; otherwise only the first two questions, and without a form, in no form."""
    a, b = map(int, re.findall(r"(\d) \+ (\d)\?", prompt)[-1])
    if "Answer: <number>" not in prompt:
        return "That depends."
    return f"Answer: {a + b if a < 3 or 'step by step' in prompt else 0}"


def accuracy(lab: Lab) -> dict[str, float]:
    return dict(lab.sql("SELECT model_version, avg(correct::INT) FROM turn_results GROUP BY ALL ORDER BY 1"))


def test_prompts_are_asked_scored_and_compared_like_model_versions(lab: Lab) -> None:
    folder = lab.suite(cases=CASES, **SUITE, prompts=PROMPTS)
    lab.suite("other", cases=CASES, **SUITE)
    with OpenAIServer(model=adds_up) as server:
        options = {"base_url": f"{server.url}/v1", "api_key_env": None}
        lab.versions(
            {"name": "fake-1", "provider": "openai", "model": "f", "options": options, "max_tokens_total": 10**6}
        )

        said = lab.cli("run", "--suite", "small", "--model-version", "fake-1", "--all-prompts", "--no-report")

        assert said.code == 0, said.text
        assert accuracy(lab) == {"fake-1": 0.5, "fake-1+bare": 0.0, "fake-1+steps": 1.0}
        assert len(server.asked) == 12 + 4  # what cannot be read is asked for again, with the form
        shown = lab.cli("compare", "fake-1", "fake-1+steps", "--suite", "small")
        assert "accuracy      50% → 100%" in shown.out

        # A changed sentence asks this prompt again, and no other.
        server.asked.clear()
        header = folder / "suite.yaml"
        header.write_text(header.read_text().replace("step by step", "quickly"))
        said = lab.cli("run", "--suite", "small", "--model-version", "fake-1", "--prompt", "steps", "--no-report")
        assert said.code == 0, said.text
        assert accuracy(lab) == {"fake-1": 0.5, "fake-1+bare": 0.0, "fake-1+steps": 0.5}
        assert len(server.asked) == 4

        plan = lab.cli("plan", "--suite", "small", "--all-prompts").out
        planned = [line.removeprefix("small").split() for line in plan.splitlines() if " fake-1" in line]
        assert [row[0] for row in planned] == ["fake-1", "fake-1+steps", "fake-1+bare"]
        assert {tuple(row[1:]) for row in planned} == {("4", "4", "0", "0", "$0.00")}, "all in the journal"
        shown = lab.cli("validate", "--suite", "small", "--show-prompt", "steps").out
        assert "1 + 1?\n\nThink quickly." in shown
        assert lab.cli("remove", "fake-1+bare", "--yes").code == 0
        assert set(accuracy(lab)) == {"fake-1", "fake-1+steps"}


@pytest.mark.usefixtures("puppet")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--model-version", "puppet+stps"], "no suite has the prompt 'stps' of 'puppet+stps'; known: steps, bare"),
        (["--prompt", "stps"], "no suite has the prompt 'stps'"),
        (["--suite", "other", "--prompt", "bare"], "needs the prompt 'bare', which the suite does not have"),
        (["--model-version", "puppet+bare", "--prompt", "steps"], "'puppet+bare' names a prompt already"),
        (["--model-version", "app", "--prompt", "steps"], "no prompt of a suite reaches the provider 'http'"),
        (["--prompt", "bare", "--all-prompts"], "leave out --prompt"),
        (["--model-version", "pupet"], "known: puppet, app"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(lab: Lab, arguments: list[str], says: str) -> None:
    lab.suite(cases=CASES, **SUITE, prompts=PROMPTS)
    lab.suite("other", cases=CASES, **SUITE)
    app = {"name": "app", "provider": "http", "options": {"base_url": "http://127.0.0.1:1", "answer_path": "$.a"}}
    lab.versions({"name": "puppet", "provider": "puppet"}, app | {"active": False})

    said = lab.cli("plan", *arguments)

    assert said.code == 2
    assert says in said.err


SUITES = find_suites([SHIPPED / "suites"])
OF_EACH_TRACK = ("finqa_sample", "sql_sample", "pandas_sample", "sdmx_sample", "tickets_sample")


@pytest.mark.parametrize("suite", ["finqa_sample", "tickets_sample"])
def test_the_story_of_a_prompt(lab: Lab, suite: str) -> None:
    """Asked carefully, the model is right; otherwise it answers another question."""
    folder = lab.shipped(suite, 12)
    (folder / "prompts").mkdir(exist_ok=True)
    careful = folder / "prompts" / "careful.yaml"
    careful.write_text("instructions: Work carefully.\n")
    source = find_suites([folder.parent])[suite]
    track, cases = source.track(), [case for case, _ in SuiteReading(source)]
    others = [track.oracle(turn) for case in cases for turn in case.turns]
    right = {turn.question: track.oracle(turn) for case in cases[:2] for turn in case.turns}
    wrong = {question: next(one for one in others if one != oracle) for question, oracle in right.items()}

    def answers(prompt: str) -> str:
        asked = max((prompt.rfind(question), len(question), question) for question in right)[-1]
        return (right if "Work carefully." in prompt else wrong)[asked]

    with OpenAIServer(model=answers) as server:
        options = {"base_url": f"{server.url}/v1", "api_key_env": None}
        lab.versions(
            {"name": "fake", "provider": "openai", "model": "f", "options": options, "max_recovery_attempts": 0}
        )
        run = ["run", "--suite", suite, "--model-version", "fake", "--no-report", "--no-canary"]
        run += [word for case in cases[:2] for word in ("--case", case.id)]
        assert lab.cli(*run, "--prompt", "careful").code == 0
        assert accuracy(lab) == {"fake+careful": 1.0}
        careful.write_text("instructions: Work quickly.\n")
        said = lab.cli(*run, "--prompt", "careful").out

    (line,) = [one for one in said.splitlines() if one.startswith("before:")]
    assert re.search(rf"{suite}, fake\+careful: 100(\.0)?% → .*; prompt changed; ", line)
    (row,) = json.loads(lab.cli("compare", "fake+careful@before", "fake+careful", "--format", "json").out)
    assert (row["causes"], row["accuracy_a"], row["fixed"]) == ("prompt changed", 1.0, 0)
    assert row["accuracy_b"] < 1.0
    kept = lab.sql("SELECT newest, accuracy FROM evaluations ORDER BY newest")
    assert kept == [(False, 1.0), (True, row["accuracy_b"])]


def documented() -> dict[str, set[str]]:
    """Track → the names of parts that the guide lists."""
    rows = re.findall(r"^\| \[(\w+)\]\(\w+\.md\) \| (.*?) \|", (ROOT / "docs" / "prompts.md").read_text(), re.MULTILINE)
    return {track: set(re.findall(r"`(\w+)`", names)) for track, names in rows}


@pytest.mark.parametrize("source", [SUITES[name] for name in OF_EACH_TRACK], ids=OF_EACH_TRACK)
def test_every_track_gives_the_parts_that_its_guide_lists(source: SuiteSource) -> None:
    track = source.track()
    case, _ = next(iter(SuiteReading(source)))
    turn, version = case.turns[0], track.prompt_versions[-1]
    parts = track.prompt_parts(case, turn, [], version)
    own = track.prompt(case, turn, [], version)

    names = {*parts.texts, *parts.messages, "examples"} - {*track.prompt_fields(case)}
    assert names == documented()[track.name]

    added = {
        "before": "First.",
        "after": "Last.",
        "instructions": "Mind!",
        "examples": [{"question": "x", "answer": "y"}],
    }
    made = parts.prompt(SuitePrompt.model_validate(added))
    assert made.messages[0].text == f"First.\n\n{own.messages[0].text}\n\nLast."
    assert made.messages[-1].text == f"{own.messages[-1].text}\n\nMind!"
    assert made.shared == own.shared + 2
    assert made.answer_schema == own.answer_schema

    texts = "\n\n".join(f"{{{{ {name} }}}}" for name in parts.texts)
    whole = SuitePrompt.model_validate({"template": [*parts.messages, {"user": texts}]})
    assert not [*parts.complaints(whole)]
    assert all(text in parts.prompt(whole).messages[-1].text for text in parts.texts.values())


@pytest.mark.usefixtures("puppet")
def test_what_a_suite_says_today_is_asked_where_no_prompt_is_named(lab: Lab) -> None:
    folder = lab.suite(cases=CASES, **SUITE)
    lab.versions({"name": "puppet", "provider": "puppet"})
    lab.evaluate(upto="generations")
    before = {call.prompt for call in Puppet.asked}
    Puppet.asked.clear()

    (folder / "prompts").mkdir()
    Path(folder / "prompts" / "steps.yaml").write_text("instructions: Think.\n")
    lab.evaluate(upto="generations")
    assert not Puppet.asked

    lab.evaluate(version="puppet+steps", upto="generations")
    assert len({call.prompt.text() for call in Puppet.asked} - {one.text() for one in before}) == 4
