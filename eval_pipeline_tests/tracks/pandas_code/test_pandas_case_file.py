"""The suite's files: cases, tables, options; what is wrong with them is told with its place. And responses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.model import Attempt, Ran, Response
from eval_pipeline.sandbox.layers import MissingPackagesError, read_layer
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import stored_result
from eval_pipeline_plugins.tracks.pandas_code.cases.source import (
    PandasOptions,
    PandasShared,
    SuiteTable,
    TableColumn,
    read_tables,
)
from eval_pipeline_plugins.tracks.pandas_code.cases.template import filled
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code
from eval_pipeline_plugins.tracks.pandas_code.responses.validator import validate
from eval_pipeline_plugins.tracks.pandas_code.results.reading import result_text
from eval_pipeline_plugins.tracks.pandas_code.shown.cards import turn_cards
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox, read, write_stall

COLUMNS = tuple(TableColumn(name, "int64", 0, 1, ()) for name in ("a", "b"))
SHARED = PandasShared({"t": SuiteTable("t", "tables/t.csv", "0" * 32, 3, COLUMNS, Path("/nowhere"))}, PandasOptions())
CODE = "result = df.a.sum()"


def _case(**turn: Any) -> dict[str, Any]:
    return {"id": "one", "turns": [{"question": "Sum?"} | turn]}


TEMPLATED = {"question": "?", "code": CODE, "tests": "t", "template": "[insert]"}


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (_case(), "'code'"),
        (_case(expected=1, answers={"a": "1"}), "one of 'expected', 'answers' and 'tests'"),
        (_case(tests="assert True"), "'tests' need 'code'"),
        (_case(code=CODE, template="[insert]"), "'template' needs 'tests'"),
        (_case(code=CODE, tests="t", template="x = 1"), r"one line '\[insert\]'.* it has 0"),
        ({"id": "one", "turns": [TEMPLATED] * 2}, "one turn.*'template'"),
        (_case(answers={"a": 1}), "texts by name"),
        (_case(code=CODE, cod="x"), "cod: unknown field"),
        ({"id": "one", "turns": []}, "at least 1 item"),
    ],
)
def test_what_a_turn_must_say(raw: dict[str, Any], told: str) -> None:
    with pytest.raises(CaseError, match=told):
        read(raw, SHARED)


@pytest.mark.parametrize(
    ("raw", "place", "told"),
    [
        (_case(code="result = ("), ("turns", 0, "code"), "Python"),
        ({**_case(code=CODE), "tables": ["t", "u"]}, ("tables",), "'u'"),
    ],
)
def test_a_case_that_does_not_fit_its_suite_names_the_field(raw: dict[str, Any], place: Any, told: str) -> None:
    with pytest.raises(CaseError) as caught:
        read(raw, SHARED)
    ((found, why),) = caught.value.problems
    assert found == place and told in why


@pytest.mark.parametrize(
    ("question", "more", "ordered"),
    [
        ("Give a and b sorted by a descending.", {}, True),
        ("Give the sum of a per b.", {}, False),
        ("Give the sum of a per b.", {"ordered": True}, True),
        ("Give a and b sorted by a descending.", {"ordered": False}, False),
        ("Give the sum of a per b.", {"ordered": ["a"]}, True),
    ],
)
def test_the_words_of_the_question_say_whether_order_counts(question: str, more: Any, ordered: bool) -> None:
    assert read(_case(code=CODE, **more, question=question), SHARED).turns[0].gold.ordered is ordered


def test_complexity_is_the_calls_of_the_reference_code() -> None:
    case = read(_case(code='result = df.groupby("a").sum().reset_index()'), SHARED)
    assert TRACK.gold_complexity(case.turns[0]) == 3
    assert TRACK.gold_complexity(read(_case(expected=4), SHARED).turns[0]) == 0


@pytest.mark.parametrize(
    ("template", "code", "program"),
    [
        ("a = 1\n[insert]\nb = 2", "  x = a", "a = 1\nx = a\nb = 2\n"),
        (
            "def f(a):\n[insert]\nf(1)",
            "x = a\nif x:\n  return x",
            "def f(a):\n    x = a\n    if x:\n      return x\nf(1)\n",
        ),
        ("if a:\n  def f(a):\n\n    [insert]\n", "return a", "if a:\n  def f(a):\n\n    return a\n"),
        ("for a in b:\n[insert]", "", "for a in b:\n    pass\n"),
    ],
)
def test_answers_get_the_indentation_of_their_place(template: str, code: str, program: str) -> None:
    assert filled(template, code) == program


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (42.5, "42.5"),
        (None, "missing"),
        ([1, 2], "1\n2"),
        ({"a": [1, 2], "b": ["x", None]}, "a | b\n1 | x\n2 | missing"),
        ({"a": []}, "a\n(no rows)"),
    ],
)
def test_stored_results_as_people_read_them(expected: Any, text: str) -> None:
    assert result_text(stored_result(expected)) == text


def test_long_results_are_cut() -> None:
    assert result_text(stored_result(list(range(100))), rows=2) == "0\n1\n… 100 rows"


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (CODE, "valid"),
        ("x = 1", "suspicious"),
        ("result = (", "invalid"),
        ("for result in [1]: pass", "valid"),
        ("import os\nresult = os.getcwd()", "valid"),
    ],
)
def test_the_validator_looks_before_it_runs(code: str, verdict: str) -> None:
    found = validate(Code(code), None, read(_case(code=CODE), SHARED).context)
    assert found.verdict == verdict
    assert found.checks.get("other_modules", []) == (["os"] if "import os" in code else [])


@needs_sandbox
@pytest.mark.parametrize(
    ("name", "contents", "told"),
    [
        ("two words.csv", "a\n1\n", "'two words' is the name of its DataFrame"),
        ("class.csv", "a\n1\n", "'class' is the name of its DataFrame"),
        ("bad.parquet", "no parquet", "pandas does not read it"),
        ("other.csv", "a;b\n1,5;2\n", "has ';' between its cells; expected ','"),
        ("other.csv", "a\tb\n1\t2\n", "has tabs between its cells; expected ','"),
        ("other.csv", "a\n1\nä\n", "line 3 has the byte 0xE4, which is 'ä' in Windows-1252; save it as UTF-8"),
    ],
)
def test_tables_that_cannot_be_used_are_named(tmp_path: Path, name: str, contents: str, told: str) -> None:
    (write_stall(tmp_path) / "tables" / name).write_text(contents, encoding="cp1252")
    with pytest.raises(InputError) as caught:
        read_tables(tmp_path, {})
    assert name in str(caught.value)
    assert told in str(caught.value)


def test_options_that_are_wrong_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"options\.timed_runs: expected a number of at least 1, found"):
        read_tables(tmp_path, {"timed_runs": 0})


PINNED = f"pandas==2.0.3 --hash=sha256:{'0' * 64}\n"


def test_the_versions_of_a_pandas_of_the_suites_own_are_in_the_evidence(tmp_path: Path) -> None:
    (tmp_path / "packages.txt").write_text(PINNED)
    for layer, told in ((read_layer(tmp_path / "packages.txt", tmp_path), "2.0.3"), (None, None)):
        case = read(_case(expected=1), replace(SHARED, layer=layer))
        outcome = Ran({"result": {"kind": "value", "value": 1}})
        final = Attempt(case.turns[0].id, 0, 0, "", Response(""), None, Code("", "1"), outcome)
        (found,) = TRACK.gather(case, case.turns[0], final)
        assert found.details.get("versions", {}).get("pandas") == told
        shown = turn_cards(Seen(case, case.turns[0], [final], [found]))
        assert ("run with" in str(shown)) is (told is not None)


def test_tables_are_described_by_the_suites_own_pandas_which_has_to_be_installed(tmp_path: Path) -> None:
    (write_stall(tmp_path) / "packages.txt").write_text(PINNED)
    with pytest.raises(MissingPackagesError, match="eval-pipeline packages install"):
        read_tables(tmp_path, {"packages": "packages.txt"})
