"""Variants of a turn's tables: what they keep, which are left out, and which answers they refute."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Case
from eval_pipeline.sandbox.blocking import BlockingSandbox
from eval_pipeline.sandbox.returned.outcomes import SnippetRan
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared, read_tables
from eval_pipeline_plugins.tracks.pandas_code.robust import examined as examined_module
from eval_pipeline_plugins.tracks.pandas_code.robust import running as running_module
from eval_pipeline_plugins.tracks.pandas_code.robust import variants as variants_module
from eval_pipeline_plugins.tracks.pandas_code.robust.answers import behaviour_of
from eval_pipeline_plugins.tracks.pandas_code.robust.examined import (
    candidates_of,
    determined,
    mutants_on_variants,
    variants_of,
)
from eval_pipeline_plugins.tracks.pandas_code.robust.explaining import explained
from eval_pipeline_plugins.tracks.pandas_code.robust.running import outcomes_on, same
from eval_pipeline_plugins.tracks.pandas_code.running.evidence import VARIANTS, of_kind
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_plugins.tracks.pandas_code.variants.ties import takes_by_place
from eval_pipeline_tests.tracks.card_lines import card_lines
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, attempt, needs_sandbox, read, scores, unmeasured

pytestmark = needs_sandbox

ORDERS = "order_id,shop,kind,amount,paid_on\n" + "".join(
    f"{n},{('north', 'south', 'east')[n % 3]},{('web', 'phone')[n // 3 % 2]},{n * 6 % 40 or ''},2024-0{n % 9 + 1}-11\n"
    for n in range(1, 61)
)
SHOPS = "shop,area\nnorth,10\nsouth,20\neast,30\nwest,40\n"
LARGE = """\
wanted = (df["kind"] == "web") & (df["amount"] > 37)
result = int(wanted.sum())
"""
PER_AREA = """\
merged = orders.merge(shops, on="shop")
result = merged.groupby("area")["amount"].sum().reset_index()
"""


@pytest.fixture(scope="module")
def tables(home: object, working_sandbox: None, tmp_path_factory: pytest.TempPathFactory) -> PandasShared:
    folder = tmp_path_factory.mktemp("orders")
    (folder / "tables").mkdir()
    (folder / "tables" / "orders.csv").write_text(ORDERS)
    (folder / "tables" / "shops.csv").write_text(SHOPS)
    return read_tables(folder, {})


def _case(tables: PandasShared, code: str, names: object = "orders", **more: Any) -> Case:
    return read({"id": "c", "tables": names, "turns": [{"question": "Which?", "code": code, **more}]}, tables)


def _robust(case: Case, code: str) -> object:
    return scores(case, answer(code))["robust_correct"]


MAPPED = """\
areas = orders["shop"].map(shops.set_index("shop")["area"])
result = orders.groupby(areas.rename("area"))["amount"].sum().reset_index()
"""


@pytest.mark.parametrize(
    ("reference", "code", "robust"),
    [
        (LARGE, LARGE.replace("> 37", ">= 37"), False),  # right by chance on the given tables
        (LARGE, LARGE.replace("> 37", "> 37.0"), True),
        (LARGE, "result = len(df.query(\"kind == 'web' and amount > 37\"))", True),
        (LARGE, 'result = df.loc[df["amount"].gt(37)].loc[lambda d: d["kind"].eq("web")].shape[0]', True),
        (LARGE, "big = df[df.amount > 37]\nresult = int(np.sum(big['kind'].to_numpy() == 'web'))", True),
        (PER_AREA, PER_AREA.replace('on="shop"', 'on="shop", how="right"'), False),
        (PER_AREA, MAPPED, True),
    ],
)
def test_what_is_right_by_chance_is_refuted_and_another_way_is_not(
    reference: str, code: str, robust: bool, tables: PandasShared
) -> None:
    found = scores(_case(tables, reference, "orders" if reference == LARGE else ["orders", "shops"]), answer(code))
    assert (found["result_match"], found["robust_correct"]) == (robust or reference == LARGE, robust)


def test_variants_keep_columns_types_and_what_a_model_is_told_of_them(tables: PandasShared) -> None:
    case = _case(tables, LARGE)
    gold = case.turns[0].gold
    found = variants_of(gold)
    assert len({one.kind for one in found}) >= 8
    show = "result = [df.dtypes.astype(str).tolist(), df['order_id'].is_unique, df.isna().sum().tolist(), len(df)]"
    told = [row[0]["value"]["v"] for row in outcomes_on(gold, [one.tables for one in found], [show])]
    given = ["int64", "str", "str", "float64", "str"]
    assert all(types["v"] == given and unique for types, unique, _, _ in told)
    assert any(missing["v"][3] for _, _, missing, _ in told)
    assert not any(sum(missing["v"]) - missing["v"][3] for _, _, missing, _ in told)
    assert min(rows for _, _, _, rows in told) == 1


def test_the_same_variants_are_made_again(
    tables: PandasShared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = _case(tables, LARGE).turns[0].gold
    kept = variants_of(gold)
    monkeypatch.setenv("EVAL_HOME", str(tmp_path))
    assert variants_of(gold) == kept


def test_where_the_result_depends_on_the_order_of_rows_or_on_ties_there_is_no_right_one(tables: PandasShared) -> None:
    first = _case(tables, 'result = df["order_id"].iloc[0]').turns[0].gold
    assert {one.kind for one in variants_of(first)} == {"one row"}
    top = _case(tables, 'result = df.nlargest(3, "amount")[["order_id", "amount"]]').turns[0].gold
    ties = "same = df['amount'].nlargest(4)\nresult = bool(same.iloc[2] == same.iloc[3]) if len(same) > 3 else False"
    found = variants_of(top)
    assert found
    assert all(row[0]["value"] is False for row in outcomes_on(top, [one.tables for one in found], [ties]))


@pytest.mark.parametrize("code", ['df["amount"].diff().abs().sum()', 'int((df["shop"] != df["shop"].shift()).sum())'])
def test_what_is_the_same_in_the_opposite_order_only_is_found_to_depend_on_the_order(
    tables: PandasShared, code: str
) -> None:
    gold = _case(tables, f"result = {code}").turns[0].gold
    assert len(candidates_of(gold)) > 8
    assert len(variants_of(gold)) <= 3  # a single row, and what is the same by chance


def test_another_way_to_break_ties_is_right_although_it_differs_on_tables_with_ties(tables: PandasShared) -> None:
    case = _case(tables, 'result = df.nlargest(3, "amount")[["order_id", "amount"]]')
    gold = case.turns[0].gold
    last = 'result = df.nlargest(3, "amount", keep="last")[["order_id", "amount"]]'
    candidates = candidates_of(gold)
    results = [row[0] for row in outcomes_on(gold, [one.tables for one in candidates], [last])]
    alike = [same(gold, result, one.expected) for result, one in zip(results, candidates, strict=True)]
    found = behaviour_of(gold, last)
    assert found is not None and 0 < len(found.right) == len(variants_of(gold)) < len(candidates)
    assert not all(alike)
    assert all(found.right)


def test_an_answer_is_not_robust_by_variants_of_which_none_decides(tables: PandasShared) -> None:
    gold = _case(tables, 'result = df["order_id"].iloc[1]').turns[0].gold
    assert variants_of(gold) == ()
    assert behaviour_of(gold, 'result = df["order_id"].to_list()[1]') is None


def test_whether_results_depend_on_the_order_of_rows_is_found_out_once_and_for_answers_that_differ(
    tables: PandasShared, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = _case(tables, LARGE.replace("37", "31")).turns[0].gold
    assert gold.code is not None
    checked = Mock(wraps=running_module.examine_snippet)
    monkeypatch.setattr(running_module, "examine_snippet", checked)
    right = behaviour_of(gold, gold.code.replace("> 31", "> 31.0"))
    assert right is not None and all(right.right)
    assert not checked.called
    for other in (">=", "<"):
        wrong = behaviour_of(gold, gold.code.replace(">", other))
        assert wrong is not None and not all(wrong.right)
    places = [call.kwargs["checked"] for call in checked.call_args_list if call.kwargs.get("checked")]
    assert len(places) == 1
    assert len(places[0]) == 4 < len(candidates_of(gold))  # three and that of one row: no row is taken by its place


@pytest.mark.parametrize(
    ("code", "takes"),
    [
        ('df["a"].sum()', False),
        ('df[df["b"] > 3].merge(s, on="c").pivot_table(index="c", values="b", aggfunc="sum")', False),
        ('df["a"].iloc[0]', True),
        ('df.groupby("a").first()', True),
        ('df.loc[df["a"].argmax()]', True),
        ('df["a"].rank()', True),
        ('df.sort_values("a").groupby("b").sum()', True),
        ("max(rows, key=len)", True),
        ('df["a"][:3]', True),
    ],
)
def test_what_may_depend_on_the_order_of_rows_somewhere_only(code: str, takes: bool) -> None:
    assert takes_by_place(code) is takes


def test_mutants_that_take_too_long_together_are_run_apart(
    tables: PandasShared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = _case(tables, PER_AREA.replace("sum", "max"), ["orders", "shops"]).turns[0].gold
    together = mutants_on_variants(gold)
    assert 0 < len(together[0].results) == sum(determined(gold))
    assert len({json_text(one.results) for one in together}) > 1
    mutants_on_variants.cache_clear()
    monkeypatch.setenv("EVAL_HOME", str(tmp_path))
    nothing = Mock(side_effect=lambda gold, codes, variants: [[None] * len(variants) for _ in codes])
    monkeypatch.setattr(examined_module, "shared_results", nothing)
    assert mutants_on_variants(gold) == together
    assert nothing.call_count == 1


def test_what_the_sandbox_could_not_find_out_is_not_kept(tables: PandasShared, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = _case(tables, PER_AREA.replace("sum", "min"), ["orders", "shops"]).turns[0].gold
    assert gold.code is not None
    wrong = gold.code.replace("min", "max")
    with monkeypatch.context() as now:
        now.setattr(examined_module, "examined_on", lambda *_, **__: None)
        assert sum(determined(gold)) < len(determined(gold))
        little = behaviour_of(gold, wrong)
    variants_module.once.cache_clear()  # as in the next run
    found = behaviour_of(gold, wrong)
    assert little is not None and found is not None
    assert len(little.results) < len(found.results) == len(variants_of(gold)) == sum(determined(gold))
    assert explained(gold, wrong, None, found, right=False).kinds == ("aggregation",)


def test_a_counterexample_is_small_and_shows_both_results(tables: PandasShared) -> None:
    case = _case(tables, PER_AREA, ["orders", "shops"])
    wrong = PER_AREA.replace("sum()", "mean()")
    tried = attempt(case, answer(wrong))
    with unmeasured():
        gathered = TRACK.gather(case, case.turns[0], tried)
    evidence = of_kind(gathered, VARIANTS)
    assert evidence is not None
    told = evidence.details["counterexample"]
    assert set(told["tables"]) == {"orders", "shops"}
    assert sum(len(text.splitlines()) - 1 for text in told["tables"].values()) <= 12
    assert told["expected"] != told["returned"]
    shown = card_lines(TRACK.cards(Seen(case, case.turns[0], [tried], gathered)))
    assert "variants of the tables" in shown["Counterexample"][0]
    assert {"Counterexample: Table orders", "Counterexample: Table shops"} <= shown.keys()
    assert "\n".join(shown["Counterexample: Expected"]) == told["expected"]
    assert "\n".join(shown["Counterexample: Returned"]) == told["returned"]


def test_equal_code_runs_nothing_and_an_answer_seen_before_neither(
    tables: PandasShared, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = _case(tables, LARGE).turns[0].gold
    other = LARGE.replace("wanted", "rows")
    first = behaviour_of(gold, other)
    monkeypatch.setattr(running_module, "sandbox", lambda layer: pytest.fail("it was run again"))
    assert behaviour_of(gold, other) == behaviour_of(gold, f"# seen\n\n{other}") == first
    same = behaviour_of(gold, f"# the same\n{LARGE}")
    assert same is not None and same.right == ()
    assert _robust(_case(tables, LARGE), f"# the same\n{LARGE}") is True


@pytest.mark.parametrize(
    "code",
    [
        "result = 0\nraise SystemExit",
        "import sys\nsys.modules['__main__'].__dict__.clear()\nresult = 0",
        "result = (x for x in [1])",
        "import os\nresult = 0\nos._exit(0)",
    ],
)
def test_code_that_is_out_for_trouble_is_right_nowhere(tables: PandasShared, code: str) -> None:
    gold = _case(tables, LARGE).turns[0].gold
    found = behaviour_of(gold, code)
    assert found is not None and sum(found.right) < len(found.right) / 2


def test_without_code_or_reference_code_nothing_is_said(tables: PandasShared) -> None:
    case = _case(tables, LARGE)
    assert scores(case, "I cannot say.")["robust_correct"] is None
    stored = read({"id": "c", "tables": "orders", "turns": [{"question": "Which?", "expected": 5}]}, tables)
    assert scores(stored, answer("result = 5"))["robust_correct"] is None
    assert scores(case, answer("result = nothing"))["robust_correct"] is False


def test_the_process_that_runs_an_answer_is_told_no_right_result(tables: PandasShared) -> None:
    """The answer finds all that its process holds; neither the reference code nor any expected result is there."""
    gold = _case(tables, LARGE).turns[0].gold
    peek = "import sys\nresult = repr({k: v for k, v in sys.modules['__main__'].__dict__.items() if k[0] != '_'})"
    text = running_module.run_snippet(["orders"], [dict(variants_of(gold)[0].tables)], [peek])
    with BlockingSandbox() as box:
        found = box.run(text, gold.context.paths)
    assert isinstance(found, SnippetRan) and "expected" not in text
    assert "wanted.sum" not in text


SUMS = 'result = df.groupby("shop")["amount"].sum().reset_index(name="total")'


@pytest.mark.parametrize(
    ("question", "compare", "code", "understood"),
    [
        ("Which?", "exact", 'result = df.groupby("shop")["amount"].sum().to_dict()', True),
        ("Which? Call the amounts `total`.", "expert", SUMS.replace("total", "sum"), True),
        (
            "Which? Call the amounts `total`.",
            "expert",
            SUMS.replace("total", "sum").replace(".sum()", ".mean()"),
            False,
        ),
        ("Which, sorted by shop?", "expert", SUMS.replace('"shop")', '"shop", sort=False)'), False),
    ],
)
def test_understanding_is_about_meaning_and_not_about_form(
    tables: PandasShared, question: str, compare: str, code: str, understood: bool
) -> None:
    turn = {"question": question, "code": SUMS}
    found = scores(read({"id": "c", "tables": "orders", "turns": [turn], "compare": compare}, tables), answer(code))
    assert not found["result_match"] and found["robust_correct"] is False
    assert found["wrong_in"] == ("form" if understood or "sorted" in question else "meaning")
    assert (found["understanding_score"] == found["coverage_score"] == 1) is understood
