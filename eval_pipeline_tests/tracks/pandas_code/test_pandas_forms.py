"""Right answers whatever their form, wrong ones in none: golden cases, labelled public ones, and what holds of all."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import Json
from eval_pipeline.sandbox.inside.encode import encode
from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline.table_comparison.relaxations import Relaxation
from eval_pipeline_plugins.tracks.pandas_code.analysis.row_keeping import keeps_rows
from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasContext, PandasGold
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasOptions, SuiteTable, TableColumn
from eval_pipeline_plugins.tracks.pandas_code.question.names import names_in, names_of_result
from eval_pipeline_plugins.tracks.pandas_code.question.question import read_question
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import parse_code
from eval_pipeline_plugins.tracks.pandas_code.results.bands import alike
from eval_pipeline_plugins.tracks.pandas_code.results.comparison import ResultComparison, are_equal, compare
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.outside import PUBLIC
from eval_pipeline_tests.outside import given as public

GOLDEN = golden("pandas_forms.yaml")
ROWS = golden("pandas_rows.yaml")
FLIGHTS = pd.read_csv(io.StringIO(GOLDEN["table"]))
LABELLED = PUBLIC / "cases"


def told(result: Any) -> Json:
    return json.loads(encode(result, 1_000_000))


def run(code: str, **tables: pd.DataFrame) -> Json:
    names: dict[str, Any] = {"pd": pd, "np": np, **{name: table.copy() for name, table in tables.items()}}
    if len(tables) == 1:
        names["df"] = next(iter(names[name] for name in tables))
    exec(code, names)
    return told(names["result"])


def gold_of(question: str, contract: Contract, **tables: pd.DataFrame) -> PandasGold:
    described = tuple(
        SuiteTable(name, "", "", len(one), tuple(TableColumn(str(c), "", 0, 0, ()) for c in one.columns), Path())
        for name, one in tables.items()
    )
    context = PandasContext(described, True, PandasOptions())
    ordered = read_question(question, context.columns).ordered
    return PandasGold("", None, {}, None, ordered, (), 0, question, context, contract)


def judged(returned: Json, expected: Json, gold: PandasGold) -> ResultComparison:
    found = compare(returned, expected, ordered=gold.ordered, form=gold.form)
    assert are_equal(returned, expected, ordered=gold.ordered, form=gold.form) == found.equal
    return found


def entries(verdict: str) -> Any:
    found = [(case, form) for case in GOLDEN["cases"] for form in case[verdict]]
    return pytest.mark.parametrize(("case", "form"), found, ids=[f"{case['id']}: {form}" for case, form in found])


def of_entry(case: dict[str, Any], verdict: str, form: str, contract: Contract) -> ResultComparison:
    gold = gold_of(case["question"], contract, flights=FLIGHTS)
    return judged(run(case[verdict][form], flights=FLIGHTS), run(case["gold"], flights=FLIGHTS), gold)


@entries("right")
def test_a_right_answer_is_accepted_in_whatever_form(case: dict[str, Any], form: str) -> None:
    found = of_entry(case, "right", form, Contract())
    assert found.equal, (found.why, found.needs)


@entries("wrong")
def test_a_wrong_answer_is_accepted_in_no_form(case: dict[str, Any], form: str) -> None:
    found = of_entry(case, "wrong", form, Contract())
    assert not found.equal, found.needs


@pytest.mark.parametrize(("gold", "given", "right"), GOLDEN["bands"])
def test_labels_of_bands_are_read_by_numbers_sides_and_units(gold: list[str], given: list[str], right: bool) -> None:
    counts = [[*range(3, 3 + len(gold))]]
    assert (alike([given, *counts], [gold, *counts]) is not None) is right


def test_what_form_an_answer_has_is_on_record_and_counts_where_the_contract_says_so() -> None:
    case = next(case for case in GOLDEN["cases"] if case["id"] == "n_carrier")
    needs = {form: of_entry(case, "right", form, Contract(preset="exact")) for form in case["right"]}
    assert [sorted(need) for need in needs["records other names"].needs] == [["column_names", "shape"]]
    assert {form for form, found in needs.items() if found.equal} == {"vc", "vc_reset", "named n", "floats"}


@pytest.mark.parametrize("form", ["another name", "no name"])
def test_an_answer_that_lacks_a_name_of_the_question_is_wrong_in_form_and_not_in_meaning(form: str) -> None:
    case = next(case for case in GOLDEN["cases"] if case["id"] == "named")
    found = of_entry(case, "wrong", form, Contract())
    assert [sorted(need) for need in found.needs] == [["column_names", "given_names"]]
    assert of_entry(case, "wrong", form, Contract(overlook=(Relaxation.GIVEN_NAMES,))).equal


@pytest.mark.parametrize(
    ("question", "of_result", "others"),
    [
        ("Give `net total` and the share.", (), ("net total",)),
        ("Add a column margin to the table.", (), ("margin",)),
        ("What is the mean of total_price, called x?", (), ("total_price", "x")),
        ("How many orders are there per region?", (), ()),
        ("Give columns channel and quantity.", ("channel", "quantity"), ()),
        ("Give columns weekday (Monday and so on), sales & `share`.", ("weekday", "sales", "share"), ()),
        ("Return a table with the two columns floor and total for each ward", ("floor", "total"), ()),
        ("What is it per region, in columns region and\npeople? ", ("region", "people"), ()),
        ("Output columns: month, visits", ("month", "visits"), ()),
        ("How many are in orders (columns: a, b)?", (), ("a", "b")),
        ("Give columns month and total sales.", (), ("month",)),
        ("Sum the columns a and b and count per region.", (), ("a",)),
        ("How many values are missing in columns a and b?", (), ("a", "b")),
        ("The table has columns a and b. What is the sum of b for each a?", (), ("a", "b")),
        ("Give the correlation between the columns a and b.", (), ("a", "b")),
        ("Give the mean hours per priority in columns priority and hours.", ("priority", "hours"), ()),
        ("How many are due in each week, as columns week and orders?", ("week", "orders"), ()),
        ("The result should have the columns a and b", ("a", "b"), ()),
        ("Call them month and visits.", (), ("month", "visits")),
        (f"Give the {'very ' * 50}long table with columns a and b.", (), ("a", "b")),
        ("Keep only the columns region and amount, and give the total per region.", (), ("region", "amount")),
        ("Select columns region and amount, then compute the total.", (), ("region", "amount")),
        ("Keep only the columns region and amount. How many rows have no amount?", (), ("region", "amount")),
        ("Keep columns region and amount of the orders over 10, sorted by amount.", ("region", "amount"), ()),
        ("Keep the orders over 10 and return a table with columns region and amount.", ("region", "amount"), ()),
        ("Report the total per region from the table with columns region and amount.", (), ("region", "amount")),
        ("Provide the total per region for the sales data with columns a, b and c.", (), ("a", "b", "c")),
        ("Report the total per region from the table, with columns region and total.", ("region", "total"), ()),
        ("Give for each region a table with columns product and amount.", ("product", "amount"), ()),
        ("Show the total of the data as a table with columns region and total.", ("region", "total"), ()),
        ("Report the total per region in a table with columns region and total.", ("region", "total"), ()),
    ],
)
def test_which_names_a_question_gives(question: str, of_result: tuple[str, ...], others: tuple[str, ...]) -> None:
    assert names_of_result(question) == of_result
    assert {*names_in(question)} == {*of_result, *others}


@pytest.mark.parametrize(("expression", "kept"), ROWS["kept"].items())
def test_which_results_have_a_value_for_each_row(expression: str, kept: bool) -> None:
    assert keeps_rows(f"result = {expression}", ("flights",)) is kept
    assert keeps_rows(f"import numpy\nflights['x'] = {expression}\nresult = flights['x']", ("flights",)) is kept
    assert not keeps_rows(f"for _ in range(2):\n    pass\nresult = {expression}", ("flights",))


@pytest.mark.parametrize("case", ROWS["cases"], ids=lambda case: case["question"])
def test_values_that_stand_for_rows_keep_their_order(case: dict[str, Any]) -> None:
    gold = replace(gold_of(case["question"], Contract(), flights=FLIGHTS), code=case["gold"])
    expected = run(case["gold"], flights=FLIGHTS)
    for verdict in ("right", "wrong"):
        for form, code in case[verdict].items():
            found = judged(run(code, flights=FLIGHTS), expected, gold)
            assert found.equal is (verdict == "right"), (form, found.needs)


CELLS = st.sampled_from(["north", "south", None, 1.5, -2, 7, True])
COLUMNS = st.integers(2, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=2, max_size=5))


@given(COLUMNS, st.data())
def test_other_names_and_shapes_say_the_same_and_another_cell_does_not(rows: Any, data: st.DataObject) -> None:
    frame = pd.DataFrame(rows).astype(object).add_prefix("made_up_")
    gold = gold_of("Make a table.", Contract(), flights=FLIGHTS)
    expected = told(frame)
    shuffled = frame.iloc[data.draw(st.permutations(range(len(frame))))]
    other = shuffled.rename(columns={name: f"my {name}" for name in frame.columns})
    for form in (other, other.to_dict("records"), other.to_dict("list"), other.set_index(list(other.columns[:1]))):
        assert judged(told(form), expected, gold).equal, form
    row, column = data.draw(st.tuples(st.integers(0, len(frame) - 1), st.integers(0, frame.shape[1] - 1)))
    changed = other.copy()
    changed.iloc[row, column] = "nowhere"
    assert not judged(told(changed), expected, gold).equal


def test_labelled_answers_get_the_verdict_of_people() -> None:
    orders = pd.read_csv(public(LABELLED / "orders.csv"))
    lines = public(LABELLED / "pandas_forms_half.jsonl").read_text().splitlines()
    wrong_verdicts = []
    for entry in map(json.loads, lines):
        code = parse_code(entry["response"]).code
        if entry["verdict"] == "debatable":
            continue
        gold = gold_of(entry["question"], Contract(), orders=orders)
        found = judged(run(code, orders=orders), run(entry["gold"], orders=orders), gold)
        if found.equal != (entry["verdict"] == "right"):
            wrong_verdicts.append((entry["case"], entry["form"], found.why))
    assert not wrong_verdicts
