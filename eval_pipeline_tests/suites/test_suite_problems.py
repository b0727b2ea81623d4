"""What is wrong with a suite is told with file, line, field and what was expected."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.reading.foreign import check_yaml
from eval_pipeline.core.reading.json_reading import parsed_json
from eval_pipeline.stages.checks import suite_files
from eval_pipeline.suites.cases import SuiteReading, read_cases
from eval_pipeline.suites.headers import find_suites, load_suite, read_header
from eval_pipeline.workspace.progress import SILENT
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_tests.support import TWO_CASES, Lab, case

HEADER = "name: small\nversion: '1'\ntrack: finqa\ncases: {cases}\n"
GOOD = """\
id: one
document:
  pre_text: text
  table: [[item, "2020"], [sales, "50"]]
  post_text: end
turns:
  - question: how much?
    program: "50"
    answer: 50
  - question: and more?
    program: add(50, 7)
    answer: 57
"""


def suite_of(folder: Path, *, cases: str = '"*.yaml"', **files: str) -> Path:
    made = folder / "small"
    made.mkdir()
    (made / "suite.yaml").write_text(HEADER.format(cases=cases))
    for name, text in files.items():
        (made / name.replace("__", ".")).write_text(text)
    return made


def problems(folder: Path) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        read_cases(read_header(folder))
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "expected"),
    [
        ("  post_text: end\n", "", 2, "document.post_text", "is missing"),
        ("    answer: 50\n", "", 7, "turns.0.answer", "is missing"),
        ("answer: 57", "answer: many", 12, "turns.1.answer", 'expected a number without quotes, "yes" or "no"'),
        ("answer: 57", "answer: .nan", 12, "turns.1.answer", "finite number"),
        ("add(50, 7)", "adds(50, 7)", 11, "turns.1.program", "adds"),
        (
            "question: and more?",
            "question: ''",
            10,
            "turns.1.question",
            "expected a text of at least 1 character, found ''",
        ),
        (
            "id: one\n",
            "id: one\nfeatures: {has_type3_question: true}\n",
            2,
            "features.has_type3_question",
            "unknown field; allowed: has_type2_question, has_duplicate_columns",
        ),
        (
            "id: one\n",
            "id: one\nfeatures:\n  has_type2_question: perhaps\n",
            3,
            "features.has_type2_question",
            "expected true or false, found 'perhaps'",
        ),
        (
            "id: one\n",
            "id: one\ncolour: red\n",
            2,
            "colour",
            "unknown field; allowed: id, cluster, tags, features, document, turns",
        ),
        ("id: one\n", "", 1, "id", "is missing"),
        ("id: one\n", "id: [1, 2]\n", 1, "id", "expected a text, found [1, 2]"),
        ("id: one\n", "id: NO\n", 1, "id", "found false; YAML reads NO, yes, on and the like as true or false: write "),
        ("id: one\n", "id: 011\n", 1, "id", "expected a text, found 9; write it in quotes"),
        ("id: one\n", "id: 2021-01-01\n", 1, "id", "found 2021-01-01; write it in quotes"),
        ("turns:\n", "turns: []\nrest:\n", 6, "turns", "at least 1 turn"),
    ],
)
def test_a_yaml_problem_has_its_line_field_and_what_was_expected(
    tmp_path: Path, old: str, new: str, line: int, field: str, expected: str
) -> None:
    assert old in GOOD
    found = problems(suite_of(tmp_path, one__yaml=GOOD.replace(old, new, 1)))
    told = {(problem.file, problem.line, problem.field) for problem in found}
    assert ("small/one.yaml", line, field) in told
    assert any(problem.field == field and expected in problem.message for problem in found)


def test_a_list_of_cases_and_several_documents_in_one_file_have_their_own_lines(tmp_path: Path) -> None:
    bad = GOOD.replace("    answer: 57\n", "    answer: never\n").replace("id: one", "id: two")
    indented = "".join(f"  {line}\n" for line in bad.splitlines()).replace("  id:", "- id:", 1)
    (listed,) = problems(suite_of(tmp_path, one__yaml=indented))
    assert (listed.line, listed.field) == (12, "turns.1.answer")
    (tmp_path / "small" / "one.yaml").write_text(GOOD + "---\n" + bad)
    (second,) = problems(tmp_path / "small")
    assert (second.line, second.field) == (25, "turns.1.answer")


def test_jsonl_has_the_line_of_the_case_and_pretty_printed_json_that_of_the_field(tmp_path: Path) -> None:
    good, bad = yaml.safe_load(GOOD), yaml.safe_load(GOOD)
    bad["id"], bad["turns"][1]["program"] = "two", "add(50"
    lines = f"{json.dumps(good)}\n\n{json.dumps(bad)}\n"
    made = suite_of(tmp_path, cases="cases.jsonl", cases__jsonl=lines)
    (found,) = problems(made)
    assert (found.file, found.line, found.field) == ("small/cases.jsonl", 3, "turns.1.program")
    text = json.dumps([bad], indent=2)
    (made / "suite.yaml").write_text(HEADER.format(cases="cases.json"))
    (made / "cases.json").write_text(text)
    line = next(n for n, found in enumerate(text.splitlines(), start=1) if '"add(50"' in found)
    (found,) = problems(made)
    assert (found.line, found.field) == (line, "turns.1.program")


@pytest.mark.parametrize(
    ("name", "text", "line", "expected"),
    [
        ("one.yaml", "id: one\nturns: [\n", 3, "does not parse"),
        ("one.yaml", "id: one\n\tturns: 1\n", 2, "does not parse"),
        ("one.yaml", "just a sentence\n", 1, "expected a mapping"),
        ("one.jsonl", '{"id": 1}\n{"id": \n', 2, "not a JSON object on one line"),
        ("one.txt", "id: one", None, "expected .jsonl, .json, .yaml, .csv"),
    ],
)
def test_a_file_that_does_not_parse_is_named_with_the_line(
    tmp_path: Path, name: str, text: str, line: int | None, expected: str
) -> None:
    made = suite_of(tmp_path, cases=name)
    (made / name).write_text(text)
    found = problems(made)
    assert all(problem.file == f"small/{name}" for problem in found)
    assert any(problem.line == line and expected in problem.message for problem in found), found


def test_half_a_character_is_told_by_its_field_and_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    half = json.dumps(yaml.safe_load(GOOD)).replace("how much?", "how \\ud800 much?")
    made = suite_of(tmp_path, cases="cases.jsonl", cases__jsonl=half)
    (found,) = problems(made)
    assert (found.line, found.field) == (1, "turns.0.question")
    (made / "suite.yaml").write_text(HEADER.format(cases="one.yaml"))
    (made / "one.yaml").write_bytes(b"id: \xff\xfe")
    (found,) = problems(made)
    assert (found.file, "UTF-8" in found.message) == ("small/one.yaml", True)


def test_every_problem_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    made = suite_of(tmp_path, a__yaml="id: [", b__yaml=GOOD.replace("57", "much"), c__yaml=GOOD.replace("50\n", "x\n"))
    assert {problem.file for problem in problems(made)} == {"small/a.yaml", "small/b.yaml", "small/c.yaml"}


def test_an_id_used_twice_is_told_with_both_places(tmp_path: Path) -> None:
    (found,) = problems(suite_of(tmp_path, a__yaml=GOOD, b__yaml="# a second one\n" + GOOD))
    assert (found.file, found.line, found.field) == ("small/b.yaml", 2, "id")
    assert "duplicate id 'one'" in found.message
    assert "small/a.yaml:1" in found.message


@pytest.mark.parametrize("pattern", ["cases.jsonl", "'case/*.yaml'", "'suite.*'", "''", "/cases/*.yaml"])
def test_a_pattern_that_matches_no_file_is_told_with_its_line(tmp_path: Path, pattern: str) -> None:
    (found,) = problems(suite_of(tmp_path, cases=pattern, one__yaml=GOOD))
    assert (found.file, found.line, found.field) == (str(tmp_path / "small" / "suite.yaml"), 4, "cases")
    told = pattern.strip("'")
    assert f"no file matches '{told}'; expected a pattern that matches a file" in found.message


def test_each_pattern_of_a_list_has_to_match_and_an_empty_list_is_an_empty_suite(tmp_path: Path) -> None:
    made = suite_of(tmp_path, cases="\n  - '*.yaml'\n  - more/*.yaml\n  - most.jsonl", one__yaml=GOOD)
    assert [(found.line, found.field) for found in problems(made)] == [(6, "cases.1"), (7, "cases.2")]
    (made / "suite.yaml").write_text(HEADER.format(cases="[]"))
    assert read_cases(read_header(made)) == []
    (made / "suite.yaml").write_text(HEADER.format(cases="none.jsonl"))
    (made / "none.jsonl").touch()
    assert read_cases(read_header(made)) == []


@pytest.mark.parametrize(
    ("text", "line", "field", "expected"),
    [
        ("name: small\nversion: '1'\ntrack: chess\ncases: a\n", 3, "track", "unknown track 'chess'; known: "),
        ("name: small\nversion: '1'\ncases: a\n", 1, "track", "is missing"),
        ("name: large\nversion: '1'\ntrack: finqa\ncases: a\n", 1, "name", "folder's name 'small'"),
        ("name: small\nversion: 1.5\ntrack: finqa\ncases: a\n", 2, "version", "expected a text, found 1.5"),
        (
            "name: small\nversion: '1'\ntrack: finqa\ncases: a\ncolour: red\n",
            5,
            "colour",
            "unknown field; allowed: name, version, track, ",
        ),
        ("name: small\nversion: '1'\ntrack: finqa\ncases: 5\n", 4, "cases", "expected a text or a list, found 5"),
        ("name: small\nversion: '1'\ntrack: [\n", 4, "", "does not parse"),
        ("", 1, "", "expected one mapping"),
        ("- name: small\n- name: small\n", 1, "", "expected one mapping"),
    ],
)
def test_a_wrong_header_keeps_the_suites_name_and_says_what_is_wrong(
    tmp_path: Path, text: str, line: int, field: str, expected: str
) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "suite.yaml").write_text(text)
    source = find_suites([tmp_path])["small"]
    assert source.header is None
    (found,) = source.problems
    assert (found.line, found.field) == (line, field)
    assert expected in found.message
    with pytest.raises(InputError, match=r"suite\.yaml"):
        load_suite(source)


def test_wrong_and_doubled_headers_are_problems_of_that_suite_alone(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder / "suites").mkdir(parents=True)
        suite_of(tmp_path / folder / "suites")
    (tmp_path / "a" / "suites" / "other").mkdir()
    (tmp_path / "a" / "suites" / "other" / "suite.yaml").write_bytes(b"\xff\xfe")
    alone = find_suites([tmp_path / "a" / "suites"])
    assert (alone["small"].header is None, alone["other"].header is None) == (False, True)
    doubled = find_suites([tmp_path / "a" / "suites", tmp_path / "b" / "suites"])["small"]
    assert doubled.header is None
    assert str(tmp_path / "a" / "suites" / "small") in doubled.problems[0].message
    with pytest.raises(UsageError, match="unknown suite 'big'; known: other, small"):
        Workspace(Home(tmp_path / "eval", tmp_path / "a")).suite("big")


def test_the_content_hash_follows_every_file_and_nothing_else(tmp_path: Path) -> None:
    made = suite_of(tmp_path, one__yaml=GOOD)
    before = load_suite(read_header(made)).content_hash
    (made / "one.yaml").touch()
    assert load_suite(read_header(made)).content_hash == before
    (made / "notes.md").write_text("a remark")
    assert load_suite(read_header(made)).content_hash != before


@settings(max_examples=40, deadline=None)
@given(
    before=st.integers(0, 5),
    blank=st.integers(0, 4),
    turns=st.integers(1, 6),
    data=st.data(),
)
def test_wherever_the_wrong_answer_stands_its_line_is_told(
    tmp_path_factory: pytest.TempPathFactory, before: int, blank: int, turns: int, data: st.DataObject
) -> None:
    wrong = data.draw(st.integers(0, turns - 1))
    raw = case("one", *[("50", 50.0)] * turns)
    raw["turns"][wrong]["answer"] = "nobody knows"
    lead = [f"---\n{yaml.safe_dump(case(f'lead{n}', ('50', 50.0)))}" for n in range(before)]
    text = "# comment\n" * blank + "".join(lead) + "---\n" + yaml.safe_dump(raw, sort_keys=False)
    line = next(n for n, found in enumerate(text.splitlines(), start=1) if "nobody knows" in found)
    (found,) = problems(suite_of(tmp_path_factory.mktemp("suite"), one__yaml=text))
    assert (found.line, found.field) == (line, f"turns.{wrong}.answer")


def test_the_cases_come_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    made = suite_of(tmp_path, cases="[b.yaml, '*.yaml']")
    (made / "a.yaml").write_text(yaml.safe_dump(TWO_CASES[0]))
    (made / "b.yaml").write_text(yaml.safe_dump(TWO_CASES[1]))
    assert [found.id for found in read_cases(read_header(made))] == ["beta", "alpha"]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda folder: (folder.mkdir(), (folder / "suite.yaml").symlink_to("gone.yaml")), "link to gone.yaml"),
        (lambda folder: folder.symlink_to("/nowhere/at/all"), "link to /nowhere/at/all"),
        (lambda folder: (folder.mkdir(), (folder / "suite.yml").write_text("name: small")), "rename it to suite.yaml"),
        (lambda folder: (folder.mkdir(), (folder / "Suite.yaml").write_text("name: small")), "Suite.yaml is there"),
    ],
)
def test_a_suite_that_was_meant_to_be_there_is_told(make: Callable[[Path], Any], told: str, tmp_path: Path) -> None:
    make(tmp_path / "small")
    (tmp_path / "notes").mkdir()
    (tmp_path / "README.md").write_text("no suite")
    assert list(find_suites([tmp_path])) == ["small"]
    (problem,) = find_suites([tmp_path])["small"].problems
    assert told in problem.message


def test_a_link_to_a_suite_elsewhere_is_that_suite(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    suite_of(tmp_path / "elsewhere", a__yaml=GOOD)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "small").symlink_to(tmp_path / "elsewhere" / "small")
    assert find_suites([tmp_path / "suites"])["small"].problems == ()


ONE_LINE = json.dumps(yaml.safe_load(GOOD))


@pytest.mark.parametrize(
    ("name", "text", "line", "key"),
    [
        ("a.yaml", GOOD.replace("  post_text: end\n", "  post_text: end\n  pre_text: other\n"), 6, "pre_text"),
        ("a.yaml", GOOD + "'id': two\n", 13, "id"),
        ("a.yaml", f"- {{a: 1, a: 2}}\n{GOOD}", 1, "a"),
        ("a.json", ONE_LINE.replace('"id": "one"', '"id": "one",\n"id": "two"'), 2, "id"),
        ("a.jsonl", "\n" + ONE_LINE.replace('"answer": 57', '"answer": 57, "answer": 58'), 2, "answer"),
        ("suite.yaml", HEADER.format(cases="a.yaml") + "options: {}\nname: other\n", 6, "name"),
    ],
)
def test_a_key_given_twice_is_told_with_its_line(tmp_path: Path, name: str, text: str, line: int, key: str) -> None:
    """YAML and JSON alike would keep the last value and lose the first without a word."""
    folder = suite_of(tmp_path, cases=f'"{name}"')
    (folder / name).write_text(text)
    (problem,) = problems(folder)
    assert problem.line == line
    assert f"'{key}' is given twice" in problem.message


@pytest.mark.parametrize(
    ("options", "line", "field", "told"),
    [
        ("  compare: birdy", 6, "compare.preset", "'livesqlbench', found 'birdy'"),
        ("  compare:\n    overlook:\n    - case\n    - dup", 9, "compare.overlook.1", "or 'shape', found 'dup'"),
        ("  compare: {overlook: [case], insist: [case]}", 6, "compare", "expected 'case' in 'overlook' or in 'insist'"),
        ("  compare: {ignore: [case]}", 6, "compare.ignore", "unknown field; allowed: preset, overlook, insist"),
        ("  samples: 8\n  as_of: yesterday", 7, "as_of", "expected a date such as 2024-05-01"),
        ("  as_of: 2024", 6, "as_of", "found 2024"),  # not 2024 seconds after 1970 began
        ("  as_of: '5'", 6, "as_of", "found '5'"),
        ("  samples: 8\n  as_of: 2024-13-01", 7, None, "'2024-13-01': month must be in 1..12"),
    ],
)
def test_a_wrong_option_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, line: int, field: str | None, told: str
) -> None:
    monkeypatch.setattr("eval_pipeline.suites.cases.rehearse", lambda source: None)
    folder = suite_of(tmp_path)
    (folder / "suite.yaml").write_text(HEADER.format(cases="a.yaml").replace("finqa", "sql") + f"options:\n{options}\n")
    (problem,) = problems(folder)
    assert (problem.line, problem.field) == (line, f"options.{field}" if field else "")
    assert told in problem.message


TREES = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(TREES)
def test_no_key_is_taken_for_another_one(tree: Any) -> None:
    for text in (json.dumps(tree), json.dumps(tree, ensure_ascii=False)):
        assert parsed_json(text) == tree
    check_yaml(yaml.safe_dump(tree))
    check_yaml("x: &a {k: 1}\ny: &b {j: 2}\nz: {<<: *a, <<: *b, k: 3}\n")  # merging twice loses nothing


def test_a_suite_is_looked_through_without_holding_its_cases(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most two cases are read ahead of those whose gold is checked; after something wrong no gold is checked."""
    monkeypatch.setattr(suite_files, "_AT_ONCE", 2)
    lab.suite("many", [case(f"c{place}", ("1", 1.0)) for place in range(7)])
    read, ahead = [0], list[int]()
    each = SuiteReading.__iter__

    def counted(self: SuiteReading) -> Iterator[Any]:
        for found in each(self):
            read[0] += 1
            yield found

    monkeypatch.setattr(SuiteReading, "__iter__", counted)
    workspace = lab.workspace()
    track = type(workspace.track("many"))
    checked = track.check_gold
    monkeypatch.setattr(track, "check_gold", lambda self, one: [ahead.append(read[0]), *checked(self, one)][1:])
    found = suite_files.look_through(workspace, workspace.suite("many"), SILENT)
    assert (found.cases, found.turns, found.broken, found.ends.passed) == (7, 7, [], True)
    assert [many - place for place, many in enumerate(ahead)] == [2, 1, 2, 1, 2, 1, 1]
    ahead.clear()
    for path in [*(lab.home.data / "suites" / "many").rglob("c[02].*")]:
        path.with_name(f"a{path.name}").write_bytes(path.read_bytes())
    workspace = lab.workspace()
    with pytest.raises(InputError, match=r"duplicate id 'c0'(.|\n)*duplicate id 'c2'"):
        suite_files.look_through(workspace, workspace.suite("many"), SILENT)
    assert len(ahead) == 2, "the block before the first wrong one"
