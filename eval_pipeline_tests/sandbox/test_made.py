"""What a cell has made is told of known types only, within bounds, and read as what anybody may have written."""

import json
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest

from eval_pipeline.sandbox.inside.made import MOST_BYTES, MOST_COLUMNS, MOST_VARIABLES, MadeVariables
from eval_pipeline.sandbox.world.made import made_variables

FRAME = "df = pd.DataFrame({'city': ['Ulm', 'Bonn', None], 'n': [3, 1, 2]})"


class Session:
    """Cells one after the other, and what is told after each."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"pd": pd, "np": np}
        self.variables = MadeVariables(self.names)

    def run(self, code: str) -> dict[str, Any]:
        exec(code, self.names)
        found = self.variables.of(code)
        assert json.loads(json.dumps(found)) == found == list(made_variables(found))
        return {one["name"]: one for one in found}


@pytest.mark.parametrize(
    ("code", "rows", "columns", "values"),
    [
        ("x = 7 / 2", None, [""], [["3.5"]]),
        ("x = np.float64(2)", None, [""], [["2"]]),
        ("x = ' 007'", None, [""], [["7"]]),
        ("x = True", None, [""], [["1"]]),
        ("x = pd.Timestamp('2024-05-01')", None, [""], [["2024-05-01"]]),
        ("x = float('nan')", None, [""], [[""]]),
        (FRAME.replace("df", "x"), 3, ["city", "n"], [["Ulm", "Bonn", ""], ["3", "1", "2"]]),
        (f"{FRAME}; x = df.groupby('city')['n'].sum()", 2, ["city", "n"], [["Bonn", "Ulm"], ["1", "3"]]),
        (
            f"{FRAME}; x = df.sort_values('n')",
            3,
            ["", "city", "n"],
            [["1", "2", "0"], ["Bonn", "", "Ulm"], ["1", "2", "3"]],
        ),
        (f"{FRAME}; x = df.set_index(['city', 'n'])", 3, ["city", "n"], [["Ulm", "Bonn", ""], ["3", "1", "2"]]),
        ("x = pd.Series(['b', 'a'], dtype='category', name='k')", 2, ["k"], [["b", "a"]]),
        ("x = [('a', 1), ('b', 2)]", 2, ["0", "1"], [["a", "b"], ["1", "2"]]),
        ("x = [{'k': 'a', 'n': 1}]", 1, ["k", "n"], [["a"], ["1"]]),
        ("x = {'a': 1, 'b': 2}", 2, ["key", "value"], [["a", "b"], ["1", "2"]]),
        ("x = {'a': (1, 2)}", 1, ["0", "1", "2"], [["a"], ["1"], ["2"]]),
        ("x = {'b', 'a'}", 2, [""], [["a", "b"]]),
        ("x = np.arange(4).reshape(2, 2)", 2, ["0", "1"], [["0", "2"], ["1", "3"]]),
        ("x = list(range(99))", 99, [""], None),
        ("x = []", 0, [""], [[]]),
    ],
)
def test_a_variable_is_told_with_its_rows_columns_and_values(
    code: str, rows: int | None, columns: list[str], values: list[list[str]] | None
) -> None:
    told = Session().run(code)["x"]
    assert (told["rows"], [name for name, _ in told["columns"]], told.get("values")) == (rows, columns, values)


def test_columns_of_equal_values_have_one_digest_whatever_holds_them() -> None:
    told = Session().run(
        "a = pd.DataFrame({'n': [1, 2, 2]}); b = [2, 1.0, 2]; c = {'x': '2', 'y': '1', 'z': '2'}\n"
        "d = np.array([2, 2, 1]); e = [1, 2, 3]; f = [1, 1, 2]"
    )
    digest = {name: one["columns"][-1][1] for name, one in told.items()}
    assert len({digest[name] for name in "abcd"}) == 1
    assert len({digest[name] for name in "aef"}) == 3


def test_only_what_a_cell_makes_or_changes_is_told() -> None:
    session = Session()
    assert set(session.run(f"{FRAME}\nn = len(df)")) == {"df", "n"}
    assert not session.run("print(df.shape, n)")
    assert set(session.run("df.loc[0, 'n'] = 9\nn = 3")) == {"df"}
    assert not session.run("def f(): return 1\nimport json\nnothing = None")


@pytest.mark.parametrize(
    "held",
    [
        "class X(list):\n def __iter__(self):\n  while True: pass\n __len__ = __repr__ = __str__ = __iter__\nx = X()",
        "class X:\n def __repr__(self):\n  while True: pass\n __str__ = __hash__ = __eq__ = __repr__\nx = X()",
        "class M(type):\n @property\n def __name__(cls):\n  while True: pass\nclass X(metaclass=M): pass\nx = X()",
        "class M(type):\n def __eq__(cls, _):\n  while 1: 0\n __hash__ = __eq__\nclass X(metaclass=M): pass\nx = X()",
        "class X(str):\n def __str__(self):\n  while True: pass\n strip = __str__\nx = X('a')",
        "class X(pd.DataFrame):\n @property\n def columns(self):\n  while True: pass\nx = X()",
    ],
)
def test_what_is_of_another_class_is_never_asked(held: str) -> None:
    told = Session().run(f"{held}\ny = [x, 1]\nz = pd.Series([1, 2], dtype=object)\nz.array[0] = x")
    assert "x" not in told
    assert told["y"]["values"] == [["?", "1"]]
    assert told["z"]["values"] == [["?", "2"]]


def test_what_holds_such_values_is_not_asked_either() -> None:
    session = Session()
    session.run(
        "class X:\n armed = False\n def __init__(self, of=0): self.of = of\n def __hash__(self): return self.spin(7)\n"
        " def __eq__(self, other): return self.spin(self is other)\n"
        " def spin(self, told):\n  while X.armed: pass\n  return told"
    )
    held = "rows = [{X(): 1}, {X(): 1}]\nkeys = {X(): 1}\nsome = {X()}\npairs = {'a': [X(), 2]}"
    told = session.run(f"{held}\nframe = pd.DataFrame({{'n': [1]}}, index=[X()]); X.armed = True")
    assert {name: told[name]["rows"] for name in ("rows", "keys", "some", "pairs", "frame")} == {
        "rows": 2,
        "keys": 1,
        "some": 1,
        "pairs": 1,
        "frame": 1,
    }
    session.run("class Y(pd.Index):\n def __iter__(self): raise KeyError\n name = property(__iter__)")
    told = session.run("f = pd.DataFrame([[1]], columns=['a'], index=[7])\nf.columns.__class__ = f.index.__class__ = Y")
    assert (told["f"]["rows"], told["f"]["columns"]) == (1, [])


def test_what_is_told_is_bounded() -> None:
    session = Session()
    assert session.run("x = 10 ** 99_999; y = [x]").keys() == {"y"}
    told = session.run("big = pd.DataFrame({'a': range(300_000)}); huge = 'ü' * 10 ** 6")
    assert told["big"]["rows"] == 300_000
    assert [one[1] for one in told["big"]["columns"]] == [""]  # too many to be looked at
    assert len(told["huge"]["values"][0][0]) <= 60
    wide = "pd.DataFrame({n: np.zeros(90_000) for n in range(60)})"
    assert [bool(one[1]) for one in session.run(f"large = {wide}")["large"]["columns"]] == [True] + [False] * 23
    assert len(session.run("long = [[0] * 10 ** 6] * 2")["long"]["columns"]) == MOST_COLUMNS
    assert len(session.run("wide = pd.DataFrame({n: [n] for n in range(500)})")["wide"]["columns"]) == MOST_COLUMNS
    assert len(session.run("; ".join(f"v{n} = {n}" for n in range(99)))) == MOST_VARIABLES
    many = session.run("\n".join(f"w{n} = pd.DataFrame([['{n}' * 60] * 24] * 12)" for n in range(9)))
    assert 0 < len(json.dumps(list(many.values()))) <= MOST_BYTES


def test_long_texts_are_not_copied() -> None:
    session = Session()
    code = "long = ['x' * 10 ** 6] * 2_000; one = 'x' * 10 ** 7; few = pd.Series(['a', 'b'])\n"
    code += "of_numpy = [np.str_('x' * 10 ** 6 + str(n)) for n in range(60)]; some = {*of_numpy}"
    exec(code, session.names)
    tracemalloc.start()
    told = {one["name"]: one for one in session.variables.of(code)}
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (told["long"]["rows"], told["long"]["columns"]) == (2_000, [["", ""]])
    assert (told["one"]["rows"], told["one"]["columns"]) == (None, [["", ""]])
    assert (told["of_numpy"]["columns"], told["some"]["columns"]) == ([["", ""]], [["", ""]])
    assert most < 2 * 10**7  # a copy of numpy takes four bytes a character on its way


def test_one_odd_variable_hides_no_other() -> None:
    wide = "pd.DataFrame({f'{n:02}' + 'ü' * 60: ['ü' * 60] * 12 for n in range(24)})"
    session = Session()
    told = session.run(f"from decimal import Decimal\nwide = {wide}; odd = Decimal('sNaN'); few = [1, Decimal('NaN')]")
    assert len(told["wide"]["columns"]) == MOST_COLUMNS
    assert not session.run("wide")
    huge = "huge = pd.DataFrame([[1] * 24], columns=[chr(128_000 + n) * 60 for n in range(24)]); few = 3"
    assert Session().run(huge).keys() == {"few"}
    assert (told["odd"]["values"], told["few"]["values"]) == ([[""]], [["1", ""]])


def test_what_was_too_much_to_be_told_is_told_when_it_is_named_again() -> None:
    session = Session()
    names = [f"v{n}" for n in range(MOST_VARIABLES + 5)]
    assert len(session.run("; ".join(f"{name} = 1" for name in names))) == MOST_VARIABLES
    assert session.run("; ".join(names)).keys() == set(names[MOST_VARIABLES:])


GOOD = {"name": "x", "kind": "int", "rows": None, "columns": [["", "ab"]], "values": [["1"]]}


@pytest.mark.parametrize(
    "told",
    [
        None,
        {"made": [GOOD]},
        [7],
        [{**GOOD, "name": 7}],
        [{**GOOD, "rows": "3"}],
        [{**GOOD, "rows": -1}],
        [{**GOOD, "rows": 10**30}],
        [{**GOOD, "columns": [["", "ab", "c"]]}],
        [{**GOOD, "columns": ["ab"]}],
        [{**GOOD, "columns": [["", "ab"]] * 500}],
        [{**GOOD, "columns": [["n" * 60, "d" * 60]] * 24, "values": [["v" * 60] * 90] * 24}],
    ],
)
def test_what_has_another_form_or_is_too_large_is_left_out(told: Any) -> None:
    assert made_variables(told) == ()


def test_texts_are_cut_and_can_be_written() -> None:
    (read,) = made_variables([{**GOOD, "name": "\ud800" + "n" * 10**6, "more": "x", "values": "no"}])
    assert set(read) == {"name", "kind", "rows", "columns"}
    assert read["name"] == "?" + "n" * 59
