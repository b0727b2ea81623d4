"""Prompts of suites: how they are put together, where they stand, and what is told about wrong ones."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.covering.suite_prompts import SuitePrompt
from eval_pipeline.core.errors import InputError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Message, Prompt
from eval_pipeline.suites.cases import read_cases
from eval_pipeline.suites.headers import read_header
from eval_pipeline.suites.prompts import prompt_of
from eval_pipeline.tracks.texts.prompt_parts import EXAMPLES, PromptParts, parts_of
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.goldens import golden

GOLDEN = golden("prompts.yaml")
TEMPLATE = (
    Message("system", "{{ system }}"),
    Message("user", "{{ context }}"),
    EXAMPLES,
    "history",
    Message("user", "{{ question }}\n\n{{ hint }}"),
)
TEXTS = {"system": "S", "context": "C", "question": "Q", "hint": "H"}
HISTORY = (Message("user", "q1"), Message("assistant", "a1"))
CASE = """\
id: one
document: {pre_text: a, table: [[item, "2020"], [sales, "50"]], post_text: b}
turns: [{question: how much?, program: "50", answer: 50}]
"""


def parts(texts: dict[str, str] | None = None) -> PromptParts:
    return PromptParts(
        TEMPLATE, TEXTS | (texts or {}), {"history": HISTORY}, shared=frozenset({"system", "context"}), answer_schema={}
    )


@pytest.mark.parametrize("row", GOLDEN["made"], ids=lambda row: row["what"])
def test_a_prompt_is_put_together_from_its_parts(row: dict[str, Any]) -> None:
    added = None if row["prompt"] is None else SuitePrompt.model_validate(row["prompt"])

    made = parts(row.get("texts")).prompt(added)

    assert [{message.role: message.text} for message in made.messages] == row["messages"]
    assert made.shared == row["shared"]
    assert made.answer_schema == {}


def suite(folder: Path, prompts: str, *, track: str = "finqa", more: str = "", **files: str) -> Path:
    made = folder / "small"
    (made / "prompts").mkdir(parents=True)
    (made / "suite.yaml").write_text(f"name: small\nversion: '1'\ntrack: {track}\ncases: 'c*.yaml'\n{prompts}\n{more}")
    (made / "c.yaml").write_text(CASE)
    for name, text in files.items():
        (made / "prompts" / f"{name}.yaml").write_text(text)
    return made


@pytest.mark.parametrize("row", GOLDEN["wrong"], ids=lambda row: row["says"])
def test_a_wrong_prompt_is_told_with_line_and_field(tmp_path: Path, row: dict[str, Any]) -> None:
    name = row.get("name", "p")
    folder = suite(tmp_path, f"prompts:\n  {name}: {row['prompt']}")

    with pytest.raises(InputError) as caught:
        read_cases(read_header(folder))

    (problem,) = caught.value.problems
    assert problem.file.endswith("small/suite.yaml")
    assert (problem.line, problem.field) == (row["line"], f"prompts.{name}.{row['field']}".rstrip("."))
    assert row["says"] in problem.message


def test_prompts_also_stand_in_files_of_their_own(tmp_path: Path) -> None:
    folder = suite(tmp_path, "prompts: {terse: {after: Be terse.}}", steps="instructions: Step by step.\n")

    header = read_header(folder).require()

    assert [*header.prompts] == ["terse", "steps"]
    assert header.prompts["steps"].instructions == "Step by step."
    assert len(read_cases(read_header(folder))) == 1


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("- a\n- b\n", 1, "expected one mapping with before, after"),
        ("\nafter: [1]\n", 2, "expected a text"),
        ("after: x\ninstructions: '{{ tables }}'\n", 2, "no placeholder {{ tables }}"),
        ("after: {\n", 2, "does not parse"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, line: int, says: str) -> None:
    folder = suite(tmp_path, "", steps=text)

    with pytest.raises(InputError) as caught:
        read_cases(read_header(folder))

    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(folder / "prompts" / "steps.yaml"), line)
    assert says in problem.message


def test_one_name_for_two_prompts_is_refused(tmp_path: Path) -> None:
    source = read_header(suite(tmp_path, "prompts: {terse: {after: a}}", terse="after: b"))

    assert source.header is None
    assert "another prompt 'terse'" in source.problems[0].message


def test_a_folder_of_cases_that_is_named_prompts_stays_one(tmp_path: Path) -> None:
    folder = suite(tmp_path, "", one=CASE)
    (folder / "suite.yaml").write_text("name: small\nversion: '1'\ntrack: finqa\ncases: prompts/*.yaml\n")

    assert [case.id for case in read_cases(read_header(folder))] == ["one"]


TEXT_CASES = """\
- {id: a, question: Good?, answer: "yes", fields: {page: P}}
- {id: b, question: Bad?, answer: "no"}
"""


def test_fields_that_only_some_cases_have_are_placeholders_of_the_track_text(tmp_path: Path) -> None:
    prompts = 'prompts: {p: {template: [user: "On page: {{ page }}\\n\\n{{ question }}\\n\\n{{ form }}"]}}'
    folder = suite(tmp_path, prompts, track="text", more="options: {answer: {form: text}}")
    (folder / "c.yaml").write_text(TEXT_CASES)
    source = read_header(folder)
    first, second = read_cases(source)

    def asked(case: Any) -> str:
        prompt = source.track().prompt_parts(case, case.turns[0], [], "text-1").prompt(source.require().prompts["p"])
        return prompt.messages[0].text

    assert asked(first).startswith("On page: P\n\nGood?\n\nAnswer the question.")
    assert asked(second).startswith("Bad?\n\n")


LISTED = """\
model_versions:
- {name: m, provider: oracle}
- {name: m+odd, provider: "null"}
- {name: r, provider: http, options: {base_url: "http://localhost:1"}}
"""


def test_a_model_version_with_a_prompt_has_a_name_and_an_identity_of_its_own(tmp_path: Path) -> None:
    suites = tmp_path / "data" / "suites"
    folder = suite(suites, "prompts: {terse: {after: a}, odd: {after: b}}")
    (tmp_path / "data" / "model_versions.yaml").write_text(LISTED)
    workspace = Workspace(Home(tmp_path / "home", tmp_path / "data"))

    plain, terse = workspace.model_version("m"), workspace.model_version("m+terse")

    assert set(workspace.model_versions) == {"m", "m+odd", "r", "m+terse", "m+odd+terse", "m+odd+odd"}
    assert (terse.provider, terse.active, plain.active) == ("oracle", False, True)
    assert terse.identity_hash() != plain.identity_hash()
    assert workspace.model_version("m+odd").provider == "null"  # the name in the file wins
    found = prompt_of(workspace.suite("small"), terse)
    assert found is not None
    assert found.definition() == {"after": "a"}
    assert prompt_of(workspace.suite("small"), plain) is None
    assert not workspace.is_retired("m+terse")
    assert workspace.is_retired("m+gone")
    (folder / "suite.yaml").write_text("name: [")
    assert not Workspace(workspace.home).is_retired("m+terse")


def test_a_prompt_is_what_its_texts_say() -> None:
    one = SuitePrompt.model_validate({"after": "Be terse.\n"})

    assert one.hash() == SuitePrompt.model_validate({"after": "Be terse.", "nightly": True}).hash()
    assert one.hash() != SuitePrompt.model_validate({"after": "Be terse!"}).hash()
    assert one.hash() != SuitePrompt.model_validate({"before": "Be terse."}).hash()


@given(
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text(max_size=9)), max_size=5),
    st.integers(0, 5),
)
def test_parts_of_a_whole_prompt_make_it_again(said: list[tuple[str, str]], shared: int) -> None:
    systems = [Message("system", "be good")]
    messages = (*systems, *(Message(role, text) for role, text in said if role != "system"), Message("user", "Q"))
    prompt = Prompt(messages, min(shared, len(messages) - 1))

    again = parts_of(prompt).prompt()

    assert again.messages == messages
    assert again.shared <= prompt.shared
