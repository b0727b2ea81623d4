"""Charts and files as results: charts are compared by what they show, files by their content."""

import json
from typing import Any

import pytest

from eval_pipeline.sandbox.inside.encode import encode
from eval_pipeline.sandbox.returned.results import as_pandas, read_told
from eval_pipeline.tracks.base import CaseError
from eval_pipeline_plugins.tracks.pandas_code.cases.gold import gold_response
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared
from eval_pipeline_plugins.tracks.pandas_code.results.comparison import compare
from eval_pipeline_plugins.tracks.pandas_code.results.reading import result_text
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, attempt, needs_sandbox, read, scores_of

CHARTS = golden("pandas_figures.yaml")


def drawn(code: str) -> Any:
    """The chart that code draws, in the sandbox's form; it runs here, since it is ours."""
    import matplotlib as mpl

    mpl.use("agg")
    import numpy as np
    import pandas as pd
    from matplotlib import pyplot as plt

    days = pd.to_datetime(["2024-01-05", "2024-01-06", "2024-01-07"])
    frame = pd.DataFrame({"city": ["Oslo", "Bergen", "Lund"], "amount": [3, 8, 9], "year": [2021, 2022, 2023]})
    names: dict[str, Any] = {"pd": pd, "np": np, "plt": plt, "df": frame.assign(day=days)}
    try:
        exec(code, names)
        return json.loads(encode(names["result"], 1_000_000))
    finally:
        plt.close("all")


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart["name"])
def test_charts_are_the_same_if_they_show_the_same(chart: dict[str, Any]) -> None:
    right, given = drawn(chart["right"]), drawn(chart["answer"])
    assert compare(right, right).equal
    found = compare(given, right)
    assert found.equal is chart["same"], (found.why, result_text(given), result_text(right))


def test_a_chart_is_told_as_checked_data() -> None:
    told = drawn(CHARTS[0]["right"])
    assert read_told(json.dumps({"result": told}).encode()) == {"result": told}
    assert list(as_pandas(told)["x"]) == ["Oslo", "Bergen", "Lund"]
    told["marks"]["columns"][0]["values"].pop()
    assert read_told(json.dumps({"result": told}).encode()) is None
    forged = {"kind": "figure", "marks": {"kind": "frame", "columns": [], "index": [], "rows": 0}}
    assert not compare(forged, drawn(CHARTS[0]["right"])).equal


@pytest.fixture
def case(stall: PandasShared) -> Any:
    """Reads a case."""
    turn = {"question": "Total per city?"}
    return lambda **more: read({"id": "one", "tables": ["sold"], "turns": [turn | more]}, stall)


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        ({"output": "a.png", "code": "x = 1"}, "ends with .csv"),
        ({"output": "../a.csv", "code": "x = 1"}, "without a folder"),
        ({"output": "figure", "expected": 1}, "a figure needs 'code'"),
        ({"output": "a.csv", "code": "x = 1", "tests": "x"}, "not by other means"),
    ],
)
@needs_sandbox
def test_outputs_that_cannot_be(case: Any, turn: dict[str, Any], told: str) -> None:
    with pytest.raises(CaseError, match=told):
        case(**turn)


TOTALS = 'totals = df.groupby("city")["amount"].sum()\n'


@needs_sandbox
def test_code_may_draw(case: Any) -> None:
    found = case(output="figure", code=TOTALS + "result = totals.plot.bar()")
    message = TRACK.prompt(found, found.turns[0], [], "code-1").messages[-1].text
    assert message.endswith("set `result` to the figure.")
    assert TRACK.check_gold(found) == []
    other = TOTALS + "import matplotlib.pyplot as plt\nplt.bar(totals.index, totals, color='k')\nplt.xlabel('City')\n"
    texts = (other + "result = plt.show()", other.replace("totals, color", "totals / 2, color"))
    right, halved = scores_of((found, 0, [answer(text)]) for text in texts)
    assert (right["result_match"], right["robust_correct"]) == (True, None)
    assert halved["result_match"] is False
    assert 0.5 < halved["correctness_score"] < 1


@needs_sandbox
def test_a_chart_without_anything_is_no_gold(case: Any) -> None:
    empty = "import matplotlib.pyplot as plt\nresult = plt.figure()"
    ((_, why),) = TRACK.check_gold(case(output="figure", code=empty))
    assert why == "the reference code draws nothing"


FILES = {
    "t.csv": ("to_csv('t.csv')", "[::-1].reset_index().to_csv('t.csv', index=False)", "to_csv('u.csv')"),
    "t.xlsx": ("to_excel('t.xlsx')", "to_excel('t.xlsx', sheet_name='x')", "to_csv('t.xlsx')"),
    "t.parquet": (
        "reset_index().to_parquet('t.parquet')",
        "to_frame().to_parquet('t.parquet')",
        "add(1).reset_index().to_parquet('t.parquet')",
    ),
    "t.json": ("to_json('t.json')", "reset_index().to_json('t.json')", "add(1).to_json('t.json')"),
}


@needs_sandbox
@pytest.mark.parametrize("name", FILES)
def test_code_may_write_a_file(case: Any, name: str) -> None:
    right, same, wrong = (TOTALS + f"totals.{code}".replace(".[", "[") for code in FILES[name])
    found = case(output=name, code=right)
    assert f"`{name}`" in TRACK.prompt(found, found.turns[0], [], "code-1").messages[-1].text
    scored = scores_of((found, 0, [answer(code)]) for code in (right, same, wrong))
    assert [one["result_match"] for one in scored] == [True, True, False]


TABLE, OBJECT = {"a": [1, 2], "b": ["x", None]}, {"k": ["x", "y"], "n": {"m": 1.5}}


@needs_sandbox
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((f"t.{ending}", TABLE) for ending in ("csv", "tsv", "parquet", "jsonl", "xlsx")),
        ("t.json", OBJECT),
        ("t.json", {"k": ["x"], "n": ["y", "z"]}),
        ("t.json", [{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
        ("t.txt", "yes"),
    ],
)
def test_a_file_may_be_expected_without_code(case: Any, name: str, expected: Any) -> None:
    found = case(output=name, expected=expected)
    right, wrong = scores_of((found, 0, [text]) for text in (gold_response(found.turns[0].gold), answer("result = 1")))
    assert (right["result_match"], wrong["result_match"]) == (True, False)


@needs_sandbox
def test_a_file_that_was_not_written_is_an_error(case: Any) -> None:
    found = case(output="t.csv", code=TOTALS + "totals.to_csv('t.csv')")
    outcome: Any = attempt(found, answer("result = df")).outcome
    assert "the code did not write the file t.csv" in outcome.message
