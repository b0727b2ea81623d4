"""Reading responses: which code an answer is, and what is left out of it."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasOptions, PandasShared
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import (
    Code,
    code_from_json,
    code_json,
    fenced,
    parse_code,
)
from eval_pipeline_plugins.tracks.pandas_code.responses.recorded import recorded_response
from eval_pipeline_plugins.tracks.pandas_code.responses.validator import validate
from eval_pipeline_tests.tracks.pandas_code.helpers import read

CODE = "result = df.a.sum()"
CONTEXT = read({"id": "one", "turns": [{"question": "Sum?", "code": CODE}]}, PandasShared({}, PandasOptions())).context


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
    assert parse_code(text) == Code(code)


@pytest.mark.parametrize(
    ("codes", "joined"),
    [
        (["x = df.a.sum()", "result = x"], 2),
        (["result = df.a.sum()", "result = df.b.sum()"], 1),
        (["x = 1\nresult = x", "x = 2\nresult = x"], 1),
        (["result = df.a.sum()", "result = result + 1"], 2),
        (["df = df[df.a > 1]", "result = df.a.sum()"], 2),
        (["df['c'] = df.a * 2", "result = df.c.sum()"], 2),
        (["df.dropna(inplace=True)", "result = df.a.sum()"], 2),
        (["df = df[df.a > 1]\nresult = df.a.sum()", "result = df.b.sum()"], 1),
        (["total = df.a.sum()\nresult = total", "result = df.b.sum() / total"], 2),
        (["import pandas as pd\ndf = pd.read_csv('t.csv')", "result = df.a.sum()"], 1),
        (["data = {'a': [1, 2]}\ndf = pd.DataFrame(data)", "result = df.a.sum()"], 1),
        (["x = df.a\ny = pd.DataFrame({'a': [x.sum()]})", "result = y"], 2),
        (["def f(x):\n    return x + 1", "y = f(1)", "result = y"], 3),
        (["y = 2", "result = y", "x = 1"], 2),
        (["x = (", "result = x"], 1),
        (["x = 1", "result = (x"], 1),
        (["items = [1]", "items.append(2)", "result = items"], 3),
        (["n = 1", "n += 1\nresult = n"], 2),
        (["result = df.a.to_frame()", "result.columns = ['b']"], 2),
        (["x = 1", "result = [x for x in range(3)]"], 1),
        (["result = df.a.sum()", "print(result)"], 1),
    ],
)
def test_blocks_that_build_on_each_other_are_one_program(codes: list[str], joined: int) -> None:
    found = parse_code("\n\nThen:\n".join(map(fenced, codes)))
    last = max(place for place, code in enumerate(codes) if "result " in code or "result." in code)
    assert found.code == "\n\n".join(codes[last + 1 - joined : last + 1])
    assert [f"{joined - 1} earlier" in note for note in found.notes] == [True] * (joined > 1)


def test_blocks_between_that_nothing_needs_are_left_out() -> None:
    assert (
        parse_code("\n".join(map(fenced, ["z = 1", "x = z", "y = 2", "result = x"]))).code
        == "z = 1\n\nx = z\n\nresult = x"
    )
    text = "\n".join(
        map(fenced, ["import math\nfrom scipy import stats\ndf = pd.read_csv('t')", "result = stats.mode(df.a)"])
    )
    assert parse_code(text) == Code("from scipy import stats\n\nresult = stats.mode(df.a)")


@pytest.mark.parametrize(
    ("block", "code", "note"),
    [
        (f"!pip install x\n{CODE}", f"\n{CODE}", "`!pip install x`"),
        (f"%matplotlib inline\n%pip install x\n{CODE}", f"\n\n{CODE}", "`%matplotlib inline` and 1 more"),
        (f"%%time\n{CODE}", f"\n{CODE}", "`%%time`"),
        (f"%time {CODE}\n!ls", f"{CODE}\n", "`!ls`"),
        (f"{CODE}\ndf.head?", f"{CODE}\n", "`df.head?`"),
        (f"files = !ls\n{CODE}", f"\n{CODE}", "`files = !ls`"),
        (f"{CODE}\n%%bash\nls\n", CODE, "`%%bash` and 1 more"),
        (f"if True:\n    !ls\n{CODE}", f"if True:\n    pass\n{CODE}", "`!ls`"),
        (f"{CODE}\ndisplay(result)  # ü", f"{CODE}\n", "`display(result)  # ü`"),
        (f"from IPython.display import display\n{CODE}\ndisplay(\n    df\n)", f"\n{CODE}\n\n\n", "1 more"),
        (f"{CODE}\nif True:\n    display(result)", f"{CODE}\nif True:\n    pass", "`display(result)`"),
        (f"get_ipython().system('ls')\n{CODE}", f"\n{CODE}", "`get_ipython().system('ls')`"),
        (f">>> x = 1\n>>> x\n1\n>>> {CODE}", f"x = 1\nx\n{CODE}", "`>>>` and 1 more"),
        (
            f">>> for x in [1]:\n...     y = x\n...\n>>> {CODE}\n>>> result\n6",
            f"for x in [1]:\n    y = x\n\n{CODE}\nresult",
            "`>>>`",
        ),
        (f"In [1]: x = 1\n\nIn [2]: x\nOut[2]: 1\n\nIn [3]: {CODE}", f"x = 1\nx\n{CODE}", "`In [1]:` and 1 more"),
        (f"In [1]:\nx = 1\n{CODE}\nOut[1]:\n   a\n0  1", f"\nx = 1\n{CODE}", "`In [1]:`"),
        (f"In [1]: if True:\n   ...:     {CODE}\n   ...:", f"if True:\n    {CODE}\n", "`In [1]:`"),
    ],
)
def test_what_only_a_notebook_understands_is_left_out_and_said(block: str, code: str, note: str) -> None:
    found = parse_code(fenced(block))
    assert found.code.strip("\n") == code.strip("\n") and note in " ".join(found.notes)
    assert parse_code(block) == found == code_from_json(code_json(found))
    assert validate(found, None, CONTEXT).checks["notes"] == list(found.notes)


@pytest.mark.parametrize(
    "code",
    [
        "x = (a\n% b)",
        'x = """\n!ls\n>>> x\n"""',
        "def display(x): pass\ndisplay(1)",
        "x = 1; display(x)",
        "!ls\nresult = (",
        "print(df)",
    ],
)
def test_other_code_is_left_as_it_is(code: str) -> None:
    assert parse_code(fenced(code)) == Code(code)


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
from eval_pipeline_plugins.tracks.pandas_code.analysis.snippet import read_snippet
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import parse_code
from eval_pipeline_plugins.tracks.pandas_code.cases.closed_answers import given_answers
from eval_pipeline_plugins.tracks.pandas_code.results.result_table import cell

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
    with pytest.raises(ValueError, match="found 3"):
        recorded_response({"answer": 3})
