"""The suite's files: cases, tables, options; what is wrong with them is told with its place. And responses."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.errors import InputError
from eval_pipeline.core.model import ErrorClass
from eval_pipeline.tracks.base import ArtefactError, CaseError
from eval_pipeline.tracks.pandas_code.artefact import Code, code_from_json, code_json, fenced, parse_code
from eval_pipeline.tracks.pandas_code.cases.case_file import stored_result
from eval_pipeline.tracks.pandas_code.cases.source import (
    PandasOptions,
    PandasShared,
    SuiteTable,
    TableColumn,
    read_tables,
)
from eval_pipeline.tracks.pandas_code.cases.template import filled
from eval_pipeline.tracks.pandas_code.recorded import recorded_response
from eval_pipeline.tracks.pandas_code.results.reading import result_text
from eval_pipeline.tracks.pandas_code.track import TRACK
from eval_pipeline.tracks.pandas_code.validator import validate
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
    ("text", "code"),
    [
        (f"```python\n{CODE}\n```", CODE),
        (f"Sure:\n```py\n{CODE}\n```\nThat adds them.", CODE),
        (f"```\n{CODE}\n```", CODE),
        (f"~~~python\n{CODE}\n~~~", CODE),
        (f"```python\n{CODE}", CODE),
        (CODE, CODE),
        (f"- so:\n\n  ```python\n  {CODE}\n  ```", CODE),
        (f"```bash\npip install x\n```\n```python\n{CODE}\n```", CODE),
        ("```python\nx = 1\n```\nthen\n```python\nresult = 2\n```", "result = 2"),
        ("```python\nresult = 1\n```\nfor instance it prints\n```\n6\n```", "result = 1"),
        ("import pandas as pd\nresult = 3", "import pandas as pd\nresult = 3"),
        ("```python\nresult = 1\n```\nBetter:\n```python\nresult = int(df[", "result = 1"),
        ("```python\nresult = 1\n```\nBetter:\n```python\nresult = 2", "result = 2"),
    ],
)
def test_code_is_found_in_responses(text: str, code: str) -> None:
    assert parse_code(text).code == code


@pytest.mark.parametrize(
    ("text", "told"), {"": "VALUE", "  \n": "VALUE", "I cannot.": "SYNTAX", "@a[1]": "SYNTAX"}.items()
)
def test_responses_without_code_are_errors(text: str, told: str) -> None:
    with pytest.raises(ArtefactError) as caught:
        parse_code(text)
    assert caught.value.error_class is ErrorClass[told]


LONG = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline.tracks.pandas_code.analysis.snippet import read_snippet
from eval_pipeline.tracks.pandas_code.artefact import parse_code
from eval_pipeline.tracks.pandas_code.cases.closed_answers import given_answers
from eval_pipeline.tracks.pandas_code.results.result_table import cell

starts = ["```python\\n", ""]
for part in ["\\n", "`", "```" + "a" * 150_000, " \\t", "result ", "@a["]:
    for start in starts:
        try:
            parse_code(start + part * (190_000 // len(part)) + "x", recorded=True)
        except ArtefactError:
            pass
assert given_answers({"kind": "value", "value": "@a[" * 1_000_000 + "@b[1]"}) == {"a": "@a[" * 999_999 + "@b[1"}
assert given_answers({"kind": "value", "value": "@a[" * 1_000_000}) == {}
cell({"t": "datetime", "v": "T" * 1_000_000 + "-"})
assert read_snippet("x = df\\n" + "x = x.sort_values(x)\\n" * 4_000).sorting.directions == {"ascending"}
print("read")
"""
"""What takes a second where each character is looked at a few times, and hours where it is for every other one."""


def test_long_responses_and_results_are_read_in_time_that_grows_with_their_length() -> None:
    said = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=False)
    assert (said.stdout, said.returncode) == ("read\n", 0), said.stderr


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_code(text, recorded=True)
    except ArtefactError:
        return
    assert code_from_json(code_json(found)) == found


@given(st.lists(st.sampled_from(["x = 1", "result = x", "if x:\n    y = 2", "# done"]), min_size=1).map("\n".join))
def test_code_in_a_fence_comes_back(code: str) -> None:
    assert parse_code(fenced(code)).code == code


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"response": '{"code": "result = 1"}'}, fenced("result = 1")),
        ({"response": '{"sum": 1}'}, '{"sum": 1}'),
        ({"response": "```python\nresult = 1\n```"}, "```python\nresult = 1\n```"),
        ({"response": {"code": "result = 1"}}, "```python\nresult = 1\n```"),
        ({"answer": "@a[1]"}, "@a[1]"),
    ],
)
def test_predictions_are_texts_or_objects_with_code(row: dict[str, Any], text: str) -> None:
    assert recorded_response(row) == text


def test_other_predictions_are_refused() -> None:
    with pytest.raises(ValueError, match="found int"):
        recorded_response({"answer": 3})


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
    ],
)
def test_tables_that_cannot_be_used_are_named(tmp_path: Path, name: str, contents: str, told: str) -> None:
    (write_stall(tmp_path) / "tables" / name).write_text(contents)
    with pytest.raises(InputError) as caught:
        read_tables(tmp_path, {})
    assert name in str(caught.value)
    assert told in str(caught.value)


def test_options_that_are_wrong_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"options\.timed_runs: expected a number of at least 1, found"):
        read_tables(tmp_path, {"timed_runs": 0})
