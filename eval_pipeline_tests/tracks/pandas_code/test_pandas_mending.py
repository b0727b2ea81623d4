"""A wrong answer is explained by the fewest named steps between it and the reference code."""

import ast
import re
from dataclasses import replace
from typing import Any

import pytest

from eval_pipeline.core.model import Case
from eval_pipeline.sandbox.returned.outcomes import SnippetRan
from eval_pipeline.stages.attempts.rows import Made, agreeing
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared
from eval_pipeline_plugins.tracks.pandas_code.robust.answers import Behaviour
from eval_pipeline_plugins.tracks.pandas_code.robust.examined import run_beside, variants_of
from eval_pipeline_plugins.tracks.pandas_code.robust.explaining import explained
from eval_pipeline_plugins.tracks.pandas_code.running.evidence import FAILURE, VARIANTS, of_kind
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import (
    Kind,
    Known,
    lent_mutants,
    normal,
    requirement_count,
)
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.elements import counted
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, attempt, needs_sandbox, read, scores, unmeasured
from eval_pipeline_tests.tracks.pandas_code.market import market

BY_HAND = {entry["id"]: entry for entry in golden("pandas_mending.yaml")}
DRAWN = ("window_of_three", "or_for_and", "surplus_dropna", "two_join_and_key")
SHARE_NAMED = 0.85
COLUMNS = {"a", "b", "s", "day"}
KNOWN = Known({"t": {"a": "int64", "b": "int64", "s": "str", "day": "datetime64[us]"}}, {"s": ("red", "blue")})


@pytest.fixture(scope="module")
def tables(home: object, working_sandbox: None, tmp_path_factory: pytest.TempPathFactory) -> PandasShared:
    return market(tmp_path_factory.mktemp("market") / "suite")


def _case(tables: PandasShared, code: str, **more: Any) -> Case:
    return read({"id": "c", "turns": [{"question": "How much is it?", "code": code, **more}]}, tables)


def _met(tables: PandasShared, code: str, wrong: str) -> tuple[dict[str, Any], str | None]:
    case = _case(tables, code)
    with unmeasured():
        evidence = TRACK.gather(case, case.turns[0], attempt(case, answer(wrong)))
    found, failure = of_kind(evidence, VARIANTS), of_kind(evidence, FAILURE)
    assert found is not None
    return found.details["met"], failure.details["mode"] if failure else None


def _listed(one: Any) -> list[str]:
    return one if isinstance(one, list) else [one]


def _is_named(pieces: list[Any], words: list[str]) -> bool:
    return any(all(any(text in word for text in _listed(one)) for one in pieces) for word in words)


def _judged(tables: PandasShared, entry: dict[str, Any]) -> tuple[int, bool, bool]:
    """How many mistakes are named, whether the scores fit their number, and whether the mode is one of theirs."""
    met, mode = _met(tables, entry["code"], entry["answer"])
    mistakes = entry["mistakes"]
    modes = [one for mistake in mistakes for one in _listed(mistake["mode"])]
    least = 0.5 if len(mistakes) == 1 else 0.0
    fits = least <= met["understanding"] <= 0.99 and met["understanding"] <= met["coverage"]
    return sum(_is_named(one["told"], met["words"]) for one in mistakes), fits, mode in modes


@pytest.mark.always
@needs_sandbox
@pytest.mark.parametrize("name", DRAWN)
def test_a_mistake_is_named(name: str, tables: PandasShared) -> None:
    assert _judged(tables, BY_HAND[name]) == (len(BY_HAND[name]["mistakes"]), True, True)


@needs_sandbox
@pytest.mark.parametrize("file", ["pandas_mending.yaml", "pandas_mending_check.yaml"])
def test_mistakes_by_hand_are_named(file: str, tables: PandasShared) -> None:
    entries = golden(file)
    found = [_judged(tables, entry) for entry in entries]
    mistakes = sum(len(entry["mistakes"]) for entry in entries)
    print(f"{file}: {len(entries)} answers, {sum(one[0] for one in found)} of {mistakes} mistakes named")
    print("other scores or modes:", *(entry["id"] for entry, one in zip(entries, found, strict=True) if not all(one)))
    assert sum(one[0] for one in found) >= SHARE_NAMED * mistakes
    assert sum(one[1] and one[2] for one in found) >= SHARE_NAMED * len(entries)


@needs_sandbox
@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ('result = int((orders["quantity"] < 3).sum())', "result = 0"),
        (
            'result = int((orders["quantity"] > 3).sum())',
            "result = 0\nif pd is None:\n    x = (orders.quantity > 3).sum()",
        ),
        ('result = orders.groupby("region")["amount"].sum()', 'result = readings.groupby("station")["level"].max()'),
    ],
    ids=["constant", "dead code", "another question"],
)
def test_what_is_no_few_steps_away_says_so(code: str, wrong: str, tables: PandasShared) -> None:
    case = _case(tables, code)
    found = scores(case, answer(wrong))
    assert found["understanding_score"] == found["coverage_score"] == 0.0
    met, _ = _met(tables, code, wrong)
    assert (met["words"], met["exact"]) == ([], False)


@needs_sandbox
def test_what_the_given_tables_refute_is_not_understood(tables: PandasShared) -> None:
    """The variants have fewer rows than are left out here."""
    code = 'result = float(orders["amount"].sum())'
    wrong = 'result = float(orders["amount"].head(60).sum())'
    case = _case(tables, code)
    found = scores(case, answer(wrong))
    assert (found["robust_correct"], found["failure_mode"]) == (False, "wrong_n")
    met, _ = _met(tables, code, wrong)
    assert met["words"] == ["`head(60)` is too much"]
    assert met["understanding"] < met["coverage"] == 1.0


@needs_sandbox
@pytest.mark.parametrize(
    ("test", "steps"),
    [(">= 9", ["`quantity >= 9` where the reference has `quantity > 9`"]), ("> 9", [])],
    ids=["another boundary", "nothing else"],
)
def test_tables_on_which_the_code_fails_are_told_apart(test: str, steps: list[str], tables: PandasShared) -> None:
    wrong = f'some = orders[orders["quantity"] {test}]\nassert len(some) > 1\nresult = len(some)'
    met, _ = _met(tables, 'result = int((orders["quantity"] > 9).sum())', wrong)
    assert met["words"][:-1] == steps
    assert re.fullmatch(r"the code fails on \d+ of \d+ tables", met["words"][-1])
    assert met["understanding"] == 1 - len(met["words"]) / 4


@needs_sandbox
def test_a_result_that_is_not_known_is_never_understood_where_it_is_wrong(tables: PandasShared) -> None:
    """A result may be too large to be kept, so that nothing is there to be compared."""
    gold = _case(tables, 'result = float(orders["amount"].sum())').turns[0].gold
    told = explained(gold, "result = 1", None, Behaviour((), (True,) * len(variants_of(gold)), None), right=False)
    assert (told.understanding < 1, told.exact) == (True, False)


@needs_sandbox
@pytest.mark.parametrize(("runs", "explains"), [(0, None), (1, False)], ids=["none", "within one run"])
def test_a_suite_says_how_much_is_done_to_explain_a_wrong_answer(
    runs: int, explains: bool | None, tables: PandasShared
) -> None:
    bounded = replace(tables, options=tables.options.model_copy(update={"mending_runs": runs}))
    case = _case(bounded, 'result = orders.groupby("region")["amount"].sum()')
    wrong = 'result = orders.groupby("region")["amount"].mean()'
    with unmeasured():
        found = of_kind(TRACK.gather(case, case.turns[0], attempt(case, answer(wrong))), VARIANTS)
    assert (found and found.details["met"]["exact"]) is explains
    # Bounded or not, what decides is the same.
    told = scores(case, answer(wrong))
    assert (told["result_match"], told["robust_correct"]) == (False, False)
    assert (told["understanding_score"] is None) is (runs == 0)


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ('result = orders[orders["quantity"] >= 3]["amount"].sum()', True),
        ('result = orders.query("quantity >= 3")["amount"].sum()', False),
        ('orders["quantity"] = 3\nresult = orders["amount"].sum()', False),
        ('result = orders.eval("@pd.io.common.os")', False),
        ('result = pd.read_csv("orders.csv")', False),
        ('result = orders.drop(columns="amount", inplace=True)', False),
    ],
)
def test_only_what_changes_nothing_runs_beside_what_decides(code: str, is_one: bool, tables: PandasShared) -> None:
    """Changed reference code may have constants of an answer; in a text they may be more than constants."""
    gold = _case(tables, "result = len(orders)").turns[0].gold
    assert run_beside(gold, [code]) == [code][: int(is_one)]


@needs_sandbox
def test_of_two_right_answers_the_nearest_one_explains(tables: PandasShared) -> None:
    per_region, by_product = (f'result = orders.groupby("{key}")["amount"].sum()' for key in ("region", "product"))
    cases = [_case(tables, code) for code in (per_region, by_product)]
    accepted = [(case, case.turns[0]) for case in cases]
    for code, nearest in (
        (by_product, 1),
        (by_product.replace("sum", "mean"), 1),
        (per_region.replace("sum", "max"), 0),
    ):
        made: Made = [({}, attempt(cases[0], answer(code)))]
        with unmeasured():
            assert agreeing(TRACK, accepted, made) == accepted[nearest]


FORMS = [
    ("df.query('a > 3 and s == \"red\"')", "df[lambda _row: (_row['a'] > 3) & (_row['s'] == 'red')]"),
    ("df.query('1 < a <= b')", "df[lambda _row: (1 < _row['a']) & (_row['a'] <= _row['b'])]"),
    ("df.query('s in @some')", "df[lambda _row: _row['s'].isin(some)]"),
    ("df.query('not a == 1')", "df[lambda _row: ~(_row['a'] == 1)]"),
    ("df[df.a.gt(3)]", "df[df['a'] > 3]"),
    ("df[df.a.between(1, 2)]", "df[(df['a'] >= 1) & (df['a'] <= 2)]"),
    ("df[df.a.between(1, 2, inclusive='left')]", "df[(df['a'] >= 1) & (df['a'] < 2)]"),
    ("df.loc[df.a > 3, 'b']", "df[df['a'] > 3]['b']"),
    ("df.loc[df.a.isnull()]", "df[df['a'].isna()]"),
    ("df[~df.a.isna()]", "df[df['a'].notna()]"),
    ("df.b.agg('sum')", "df['b'].sum()"),
    ("pd.merge(x, y, on='a')", "x.merge(y, on='a')"),
    ("df.a > -3", "df['a'] > -3"),
    ("df.shape[0] + df.size", "df.shape[0] + df.size"),
    ("df.query('not python at all')", "df.query('not python at all')"),
]


@pytest.mark.parametrize(("text", "wanted"), FORMS)
def test_what_means_the_same_has_the_same_form(text: str, wanted: str) -> None:
    assert normal(f"result = {text}", COLUMNS) == f"result = {ast.unparse(ast.parse(wanted))}"
    assert normal(normal(text, COLUMNS), COLUMNS) == normal(text, COLUMNS)


@needs_sandbox
def test_the_normal_form_means_the_same(tables: PandasShared) -> None:
    """All forms in one process: each way of writing a condition keeps the same rows."""
    paths = _case(tables, "result = 0").context.paths
    texts = [text for text, _ in FORMS if text.startswith("df") and "@" not in text and "python" not in text]
    ways = [way for text in texts for way in (text, normal(text, COLUMNS))]
    frame = (
        'df = pd.DataFrame({"a": [1, 2, 3, 4, None], "b": [2, 2, 5, 1, 3], "s": ["red", "blue", "red", "red", "x"]})\n'
    )
    parts = "\n".join(f"said.append(str({way}))" for way in ways)
    found = sandbox().run(f"{frame}said = []\n{parts}\nresult = said", paths)
    assert isinstance(found, SnippetRan), found
    said = found.result["value"]["v"]
    assert said[::2] == said[1::2]


@pytest.mark.parametrize(
    ("code", "other", "words"),
    [
        ("result = df.a.rolling(7).mean()", "result = df.a.rolling(window=3).mean()", "`rolling(7)` were `rolling(3)`"),
        (
            "result = df.a.resample('D').sum()",
            "result = df.a.resample('W').sum()",
            "`resample('D')` were `resample('W')`",
        ),
        ("result = df.groupby('s').a.sum()", "result = df.groupby('b').a.sum()", "`groupby('s')` were `groupby('b')`"),
        ("result = df[df.a > 3]", "result = df[df.a != 3]", "`a > 3` were `a != 3`"),
        (
            "result = pd.cut(df.a, [1, 2])",
            "result = pd.cut(df.a, [1, 2], right=False)",
            "`right=True` were `right=False`",
        ),
        ("result = df.s.str.strip()", "result = df.s", "`strip()` were missing"),
        ("result = df.a.ewm(2).mean().max()", "result = df.a.max()", "`ewm(2).mean()` were missing"),
        ("result = df.a.sum()", "result = df.dropna().a.max()", "`sum` were `max`"),
        ("result = df[df.a > 3].b", "result = df.b", "`a > 3` were missing"),
        (
            "result = df[df.day > '2024-01-01']",
            "result = df[df.day > '2024-02-01']",
            "`day > '2024-01-01'` were `day > '2024-02-01'`",
        ),
        ("result = (df.a > 3).sum()", "result = len(df)", "`a > 3` were missing"),
    ],
)
def test_what_makes_codes_more_alike_is_tried_first(code: str, other: str, words: str) -> None:
    found = lent_mutants(normal(code, COLUMNS), normal(other, COLUMNS), KNOWN)
    assert found[0].rank < 0
    assert words in {one.mutant.words for one in found if one.rank == found[0].rank}


_LONG = """
def f(rows):
    kept = rows[rows['a'] > 2]
    return kept['b'].sum()
kept = t[t['a'] > 2]
kept = t[t['a'] > 2]
result = f(kept[kept['a'] < 9])
"""


@pytest.mark.parametrize("code", ["x = t['a'].sum()\nresult = x + 1", _LONG, "'''x\ny'''\nresult = f'''a\n{1}'''"])
@pytest.mark.parametrize("other", ["result = t['b'].mean()", _LONG, "result = t.head(2)"])
def test_codes_are_as_alike_as_all_of_their_elements_say(code: str, other: str) -> None:
    def apart(one: str) -> int:
        mine, theirs = (counted(ast.parse(text), COLUMNS) for text in (one, normal(other, COLUMNS)))
        return ((mine - theirs) + (theirs - mine)).total()

    code = normal(code, COLUMNS)
    for one in lent_mutants(code, normal(other, COLUMNS), KNOWN):
        assert one.rank == apart(one.mutant.code) - apart(code), one.mutant.words


@pytest.mark.parametrize(
    ("code", "mutant"),
    [
        ("result = df['a'].sum() / df['b'].sum()", "result = (df['a'] / df['b']).mean()"),
        (
            "g = df.groupby('s')\nresult = g['a'].sum() / g['b'].sum()",
            "g = df.groupby('s')\nresult = df.assign(_ratio=df['a'] / df['b']).groupby('s')['_ratio'].mean()",
        ),
        (
            "t = df.groupby('s').agg(x=('a', 'sum'), y=('b', 'sum')).reset_index()\nresult = t['x'] / t['y']",
            "t = df.groupby('s').agg(x=('a', 'sum'), y=('b', 'sum')).reset_index()\n"
            "result = df.assign(_ratio=df['a'] / df['b']).groupby('s')['_ratio'].mean().to_numpy()",
        ),
        ("d = df['a'] - 1\nresult = df['b'].sum() / d.sum()", "d = df['a'] - 1\nresult = (df['b'] / d).mean()"),
        (
            "n = (df['a'] - 1).sum()\nresult = df['b'].sum() / n",
            "n = (df['a'] - 1).sum()\nresult = (df['b'] / (df['a'] - 1)).mean()",
        ),
        ("g = df.groupby('s')\nresult = g['x'].sum() / g.y.sum()", None),
        ("result = df['a'].sum() / other['b'].sum()", None),
        ("result = df['a'].sum() / df['b'].max()", None),
    ],
)
def test_a_ratio_of_sums_may_have_become_the_mean_of_ratios(code: str, mutant: str | None) -> None:
    made = [one.mutant.code for one in lent_mutants(code, "result = 0", KNOWN) if "the mean of" in one.mutant.words]
    assert made == ([] if mutant is None else [mutant])


@pytest.mark.parametrize(
    ("code", "other", "kind"),
    [
        ("result = df.groupby('s').a.sum()", "result = df.groupby('b').a.sum()", Kind.GROUPING),
        ("result = df.sort_values('a')", "result = df.sort_values('b')", Kind.COLUMN),
        ("result = df.sort_values('a', ascending=False)", "result = df.sort_values('a')", Kind.SORT),
        ("result = df.a.rolling(2).sum()", "result = df.a.rolling(3).sum()", Kind.DERIVED),
        ("result = df.a.map({1: 5})", "result = df.a.map({1: 6})", Kind.CONSTANT),
        ("result = df.day > pd.Timestamp('2024-01-01')", "result = df.day > pd.Timestamp('2025-01-01')", Kind.CONSTANT),
        ("result = pd.cut(df.a, [0, 1], right=False)", "result = pd.cut(df.a, [0, 1])", Kind.BOUNDARY),
        ("result = df.a[df.a > 1]", "result = df.a[df.a < 1]", Kind.FILTER),
        ("result = df.head(2)", "result = df.head(3)", Kind.LIMIT),
        ("result = df.merge(x, how='left')", "result = df.merge(x)", Kind.JOIN),
        ("result = df.s.str.lower()", "result = df.s.str.upper()", Kind.STEP),
        ("result = df.day.dt.year", "result = df.day.dt.month", Kind.DERIVED),
        ("result = df.a.sum()", "result = df.b.sum()", Kind.COLUMN),
    ],
)
def test_each_element_has_the_kind_of_what_it_is_for(code: str, other: str, kind: Kind) -> None:
    found = lent_mutants(normal(code, COLUMNS), normal(other, COLUMNS), KNOWN)
    assert found[0].rank < 0
    assert found[0].mutant.kind is kind


@pytest.mark.parametrize(
    ("other", "lent"),
    [
        ("result = df[df['a'] > 3]['b'].sum()", ["t['a'] > 3"]),
        (
            "rows = t[(t['a'] > 3) & ~t['s'].isin(['red'])]\nresult = rows['b'].sum()",
            ["t['a'] > 3", "~t['s'].isin(['red'])"],
        ),
        ("result = df[df['b'] > 3]['b'].sum()", []),  # it has a condition on that column, which is another one
        ("result = df[df['a'] > df['a'].mean()]['b'].sum()", []),
        ("result = df[df['a'].isin(df['a'].to_csv('x'))]['b'].sum()", []),
        ("result = df[df['a'] > open('x')]['b'].sum()", []),
        ("result = df[df['s'].str.contains('r')]['b'].sum()", []),
        ("sums = df.groupby('s').sum()\nresult = sums[sums['total'] > 3]", []),
    ],
)
def test_a_condition_that_compares_with_constants_may_be_missing(other: str, lent: list[str]) -> None:
    code = normal("result = t[t['b'] > 1]['b'].sum()", COLUMNS)
    made = [one.mutant for one in lent_mutants(code, normal(other, COLUMNS), KNOWN) if "added" in one.mutant.words]
    assert {one.code.splitlines()[0] for one in made} == {f"t = df = t[{condition}]" for condition in lent}
    assert all(one.kind is Kind.FILTER and not one.was and one.now for one in made)


def test_no_expression_of_the_other_code_is_lent() -> None:
    """Only single constants and names: what an answer computes never runs beside the reference code."""
    query = ".query('`a b` > @pd.eval(1)').agg(lambda g: os.getpid(), how=os.environ)"
    other = f"import os\nresult = df[df.a > os.system('x')]{query}"
    for one in lent_mutants(
        normal("result = df.query('`a b` > 1').agg('sum')", COLUMNS), normal(other, COLUMNS), KNOWN
    ):
        assert "os" not in one.mutant.code and "eval" not in one.mutant.code


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("result = df['a'].sum()", 2),  # column, statistic
        ("result = df[df['a'] > 3]['b'].sum()", 5),  # two columns, comparison, constant, statistic
        (
            "result = df.groupby(['s', 'b'])['a'].max().head(3)",
            8,
        ),  # three columns, max, head, 3; groups and rows as steps
    ],
)
def test_each_element_and_step_is_a_requirement(code: str, count: int) -> None:
    assert requirement_count(code, KNOWN) == count
