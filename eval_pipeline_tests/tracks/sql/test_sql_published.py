"""Scores as BIRD, Spider and defog count them: golden cases, and references written from their definitions."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import permutations, product
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.core.model import ErrorClass, Failed
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline_plugins.tracks.sql.cases.source import read_databases
from eval_pipeline_plugins.tracks.sql.metrics import METRICS
from eval_pipeline_plugins.tracks.sql.metrics.published import asks_for_order, has_columns, positional_f1
from eval_pipeline_plugins.tracks.sql.metrics.spider import same_bags
from eval_pipeline_plugins.tracks.sql.metrics.spider import test_suite as score_with_test_suite
from eval_pipeline_plugins.tracks.sql.published import best_scores, published_scores
from eval_pipeline_plugins.tracks.sql.published import test_suite_score as score_of_test_suite
from eval_pipeline_plugins.tracks.sql.responses.artefact import without_fence
from eval_pipeline_plugins.tracks.sql.responses.evidence import executed
from eval_pipeline_plugins.tracks.sql.responses.running import runner
from eval_pipeline_plugins.tracks.sql.track import TRACK
from eval_pipeline_tests import outside
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.plugins.data_sets.sql.helpers import cases_of, run_import
from eval_pipeline_tests.support import Lab

Rows = list[tuple[Any, ...]]


def bird_ex_reference(mine: Rows, theirs: Rows) -> float:
    """By the definition: the sets of rows are equal."""
    return float(set(mine) == set(theirs))


def spider_reference(mine: Rows, theirs: Rows, ordered: bool) -> float:
    """By the definition: every order of the columns is tried, after the evaluator's quick rejection."""
    if not mine and not theirs:
        return 1.0
    if len(mine) != len(theirs) or len(mine[0]) != len(theirs[0]):
        return 0.0
    bags = [[sorted(row, key=lambda x: str(x) + str(type(x))) for row in rows] for rows in (mine, theirs)]
    if ordered and bags[0] != bags[1]:
        return 0.0
    for order in permutations(range(len(mine[0]))):
        moved = [tuple(row[place] for place in order) for row in mine]
        if moved == theirs or (not ordered and Counter(moved) == Counter(theirs)):
            return 1.0
    return 0.0


def bird_f1_reference(mine: Rows, theirs: Rows) -> float:
    """By the definition: a list of match, generated-only and expected-only shares for each position."""
    if not mine and not theirs:
        return 1.0
    mine, theirs = list(dict.fromkeys(mine)), list(dict.fromkeys(theirs))
    shares = []
    for index in range(max(len(mine), len(theirs))):
        if index >= len(mine):
            shares.append((0.0, 0.0, 1.0))
        elif index >= len(theirs):
            shares.append((0.0, 1.0, 0.0))
        else:
            own, other = mine[index], theirs[index]
            counts = (
                len([cell for cell in own if cell in other]),
                len([cell for cell in own if cell not in other]),
                len([cell for cell in other if cell not in own]),
            )
            shares.append(tuple(count / len(other) for count in counts))
    tp, fp, fn = (sum(column) for column in zip(*shares, strict=True))
    return 2 * tp / (2 * tp + fp + fn) if tp else 0.0


def defog_reference(mine: Rows, theirs: Rows, ordered: bool) -> float:
    """By the definition, in pandas: the columns that match as sorted series, then the frames without duplicates."""
    if not theirs:
        return float(not mine)
    if not mine:
        return 0.0
    super_frame, sub = (pd.DataFrame(rows, dtype=float) for rows in (mine, theirs))
    left, matched = list(super_frame.columns), []
    for name in sub.columns:
        wanted = sub[[name]].sort_values(by=name)
        found = [one for one in left if _equal(super_frame[[one]].sort_values(by=one).set_axis([name], axis=1), wanted)]
        if not found:
            return 0.0
        left.remove(found[0])
        matched.append(found[0])
    frames = [super_frame[matched].set_axis(list(sub.columns), axis=1), sub]
    return float(_equal(_normal(frames[0], ordered), _normal(frames[1], ordered)))


def _equal(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """As the evaluator does, with the tolerance that pandas has by itself: 1e-5 relative, 1e-8 absolute."""
    try:
        pd.testing.assert_frame_equal(one.reset_index(drop=True), other.reset_index(drop=True), check_dtype=False)
    except AssertionError:
        return False
    return True


def _normal(frame: pd.DataFrame, ordered: bool) -> pd.DataFrame:
    frame = frame.drop_duplicates()
    by = list(frame.columns)
    if ordered:
        rising = [name for name in by if frame[name].is_monotonic_increasing]
        by = rising + [name for name in by if name not in rising] if rising else []
    return (frame.sort_values(by=by) if by else frame).reset_index(drop=True)


SCORES = ("bird_ex", "bird_soft_f1", "spider_execution", "defog_subset")


def _rows(raw: list[list[Any]]) -> Rows:
    return [tuple(row) for row in raw]


def _names(rows: Rows) -> tuple[str, ...]:
    return tuple("abcdefgh"[: len(rows[0]) if rows else 1])


@pytest.mark.parametrize("case", golden("sql_published.yaml"), ids=lambda case: f"{case['mine']} {case['theirs']}")
def test_golden_scores(case: dict[str, Any]) -> None:
    mine, theirs = _rows(case["mine"]), _rows(case["theirs"])
    results = SqlRows(_names(mine), mine), SqlRows(_names(theirs), theirs)
    found = published_scores(*results, case.get("sql", "SELECT a FROM t"), case.get("asks", False))
    assert found == pytest.approx({name: case[name] for name in SCORES})


def test_cells_that_no_set_can_hold_are_compared_too() -> None:
    lists = SqlRows(("a",), [([1, 2],), ({"b": 3},)])
    assert set(published_scores(lists, lists, "SELECT a FROM t", False).values()) == {1.0}


def test_the_best_accepted_query_counts_for_each_score() -> None:
    assert best_scores([{"bird_ex": 0.0, "bird_soft_f1": 0.9}, {}, {"bird_ex": 1.0, "bird_soft_f1": 0.2}]) == {
        "bird_ex": 1.0,
        "bird_soft_f1": 0.9,
    }
    assert best_scores([{}]) == {}


@pytest.mark.parametrize(
    ("generated", "execution", "scores", "should_pass", "value"),
    [
        ("SELECT 1", "match", {"bird_ex": 1.0}, True, 1.0),
        ("SELECT 1", "different", {"bird_ex": 0.0}, True, 0.0),
        ("SELECT 1", "error", {}, True, 0.0),
        ("SELECT 1", "no_data", {}, True, None),
        (None, None, {}, True, 0.0),
        (None, None, {}, False, None),
    ],
)
def test_when_there_is_a_score(
    generated: str | None, execution: str | None, scores: dict[str, float], should_pass: bool, value: float | None
) -> None:
    (metric,) = (one for one in METRICS if one.name == "bird_ex")
    assert metric.function(generated, execution, scores, should_pass).value == value


@pytest.mark.parametrize(
    ("question", "tags", "asks"),
    [("Sort them.", (), True), ("In which order?", (), True), ("Which orders?", (), False), ("?", ("order_by",), True)],
)
def test_when_defog_heeds_the_order(question: str, tags: tuple[str, ...], asks: bool) -> None:
    assert asks_for_order(question, tags) == asks


_CELLS = st.sampled_from([0, 1, 2, 1.5, -3])


@st.composite
def _results(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """Two results; often the second is the first with rows or columns moved, repeated or left out."""
    width = draw(st.integers(1, 4))
    expected = draw(st.lists(st.tuples(*[_CELLS] * width), max_size=5))
    if draw(st.booleans()):
        other = draw(st.integers(1, 4))
        return draw(st.lists(st.tuples(*[_CELLS] * other), max_size=5)), expected
    order = draw(st.permutations(range(width)))
    kept = order[: draw(st.integers(1, width))] + draw(st.lists(st.sampled_from(order), max_size=2))
    rows = draw(st.permutations(expected)) if draw(st.booleans()) else list(expected)
    rows += draw(st.lists(st.sampled_from(expected), max_size=1)) if expected else []
    return [tuple(row[place] for place in kept) for row in rows], expected


@settings(max_examples=300, deadline=None)
@given(_results(), st.booleans())
def test_the_references_agree(results: tuple[Rows, Rows], ordered: bool) -> None:
    mine, theirs = results
    assert same_bags(mine, theirs, ordered) == spider_reference(mine, theirs, ordered)
    assert positional_f1(mine, theirs) == pytest.approx(bird_f1_reference(mine, theirs))
    assert has_columns(mine, theirs, _names(theirs), ordered) == defog_reference(mine, theirs, ordered)


def test_spiders_score_of_wide_results_needs_no_try_of_every_order() -> None:
    wide, other = [tuple(range(1_500))], [tuple(reversed(range(1_500)))]
    assert same_bags(wide, other, False) == 1.0
    assert same_bags([(1,) * 40 + (2, 3), (1,) * 40 + (3, 2)], [(1,) * 40 + (2, 2), (1,) * 40 + (3, 3)], False) == 0.0


def _run(path: Path, sql: str) -> SqlRows | Failed:
    try:
        with closing(sqlite3.connect(path)) as connection:
            cursor = connection.execute(sql)
            return SqlRows(tuple(column[0] for column in cursor.description), cursor.fetchall())
    except sqlite3.Error as error:
        return Failed(ErrorClass.OTHER, str(error))


def _databases(folder: Path, count: int, seed: int) -> list[Path]:
    """Small tables with few values, so that queries often agree on some of them and not on others."""
    rng, paths = Random(seed), []
    for number in range(count):
        paths.append(folder / f"{number}.sqlite")
        with closing(sqlite3.connect(paths[-1])) as connection, connection:
            connection.execute("CREATE TABLE t (a INTEGER, b TEXT, c INTEGER)")
            rows = [(rng.choice((0, 1, None)), rng.choice("xy"), rng.randrange(3)) for _ in range(rng.randrange(1, 4))]
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    return paths


QUERIES = (
    *("SELECT a FROM t", "SELECT DISTINCT a FROM t", "SELECT a FROM t WHERE a IS NOT NULL", "SELECT a, b FROM t"),
    *("SELECT b, a FROM t", "SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a DESC", "SELECT c FROM t"),
    *("SELECT COUNT(*) FROM t", "SELECT COUNT(a) FROM t", "SELECT MAX(a) FROM t", "SELECT MAX(c) FROM t"),
    *("SELECT b, COUNT(*) FROM t GROUP BY b", "SELECT b, COUNT(a) FROM t GROUP BY b", "SELECT b, 1 FROM t GROUP BY b"),
    *("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t WHERE b <> 'y'", "SELECT a FROM t WHERE b = 'x' LIMIT 2"),
    *("SELECT c FROM t WHERE c > 0", "SELECT c FROM t WHERE c >= 1", "SELECT c FROM t WHERE c = 1", "SELECT nobody"),
    *("SELECT SUM(a) FROM t", "SELECT TOTAL(a) FROM t", "SELECT a, b, c FROM t", "SELECT c, b, a FROM t"),
)


def test_test_suite_accuracy_is_that_of_every_database(tmp_path: Path) -> None:
    """650 pairs on four databases, beside the reference for each of them."""
    paths, scores = _databases(tmp_path, 4, seed=5), Counter[float | None]()
    results = {sql: [_run(path, sql) for path in paths] for sql in QUERIES}
    for accepted, generated in product(QUERIES, QUERIES):
        found = score_of_test_suite(paths, generated, accepted, lambda path, sql: results[sql][paths.index(path)])
        expected = None if any(isinstance(one, Failed) for one in results[accepted]) else 1.0
        for mine, theirs in zip(results[generated], results[accepted], strict=True):
            if expected is not None and (
                isinstance(mine, Failed)
                or not spider_reference(list(mine.rows), list(theirs.rows), "ORDER BY" in accepted)
            ):
                expected = 0.0
        assert found == expected, (generated, accepted)
        scores[found] += 1
    assert sum(scores.values()) >= 500
    assert scores[1.0] > len(QUERIES)
    assert scores[None] == len(QUERIES)


def test_a_suite_has_further_databases_of_one_schema(lab: Lab) -> None:
    folder = lab.home.data / "suites" / "shop"
    (folder / "databases" / "shop.suite").mkdir(parents=True)
    tables = "CREATE TABLE t (a INTEGER);"
    for name, rows in (("shop", "(1), (2)"), ("shop.suite/shop_2", "(1), (1)")):
        with closing(sqlite3.connect(folder / "databases" / f"{name}.sqlite")) as connection:
            connection.executescript(f"{tables} INSERT INTO t VALUES {rows};")
    case = {"id": "all", "question": "All?", "database": "shop", "expected_sql": "SELECT a FROM t"}
    shared = read_databases(folder, {})
    assert list(shared.databases) == ["shop"]
    assert [path.name for path in shared.databases["shop"].further()] == ["shop_2.sqlite"]
    found = TRACK.read_case(case, "shop", "cases.yaml", 1, shared)
    for sql, value in (("SELECT DISTINCT a FROM t", 0.0), ("SELECT a FROM t WHERE a > 0", 1.0)):
        compared = executed(found.context.database, sql, "SELECT a FROM t")
        assert compared.execution == "match"
        assert compared.published["test_suite"] == value


@pytest.mark.parametrize(("further", "value"), [(0, None), (3, 0.0)])
def test_without_further_databases_there_is_no_test_suite_accuracy(further: int, value: float | None) -> None:
    assert score_with_test_suite(None, "error", {}, further, True, False).value == value
    assert score_with_test_suite("SELECT 1", "match", {"test_suite": 1.0}, 2, True, False).value == 1.0


BIRD = outside.SQL / "bird_mini"
LONGEST, WIDEST = 2_000, 6
"""Rows up to which F1, and columns up to which all their orders are tried by the references."""


def results(lab: Lab, limit: int | None, models: str) -> Iterator[tuple[str, SqlRows, SqlRows]]:
    """The accepted query, and the results of an answer and of it, where both run."""
    made = run_import(lab, "bird", BIRD / "mini_dev_sqlite_even.json", BIRD / "column_statistics.json", limit=limit)
    golds = [case.turns[0].gold for case in cases_of(made)]
    for path in sorted(BIRD.glob(models)):
        for line in path.read_text().splitlines()[:limit]:
            answer = json.loads(line)
            gold = golds[answer["position"]]
            place = gold.database.path()
            assert place is not None
            mine, theirs = (
                runner().run_now(place, sql) for sql in (without_fence(answer["sql"]) or ";", gold.accepted[0])
            )
            if isinstance(mine, SqlRows) and isinstance(theirs, SqlRows):
                yield gold.accepted[0], mine, theirs


def compare(found: Iterator[tuple[str, SqlRows, SqlRows]]) -> Counter[str]:
    """How many pairs were compared by each score; fails at the first that differs."""
    compared: Counter[str] = Counter()
    for sql, one, other in found:
        mine, theirs = list(one.rows), list(other.rows)
        ours = published_scores(one, other, sql, False)
        references = {"bird_ex": bird_ex_reference(mine, theirs)}
        if max(len(mine), len(theirs)) <= LONGEST:
            references["bird_soft_f1"] = bird_f1_reference(mine, theirs)
        if len(other.columns) <= WIDEST:
            references["spider_execution"] = spider_reference(mine, theirs, "order by" in sql.lower())
        if _numbers(mine) and _numbers(theirs):
            references["defog_subset"] = defog_reference(mine, theirs, False)
        assert {name: ours[name] for name in references} == pytest.approx(references), (sql, mine[:5], theirs[:5])
        compared.update(references.keys())
        compared["right for BIRD"] += bool(references["bird_ex"])
    return compared


def _numbers(rows: Rows) -> bool:
    return all(isinstance(cell, int | float) for row in rows for cell in row)


@pytest.mark.always
@outside.needs(BIRD)
def test_published_answers_have_the_scores_of_the_references(lab: Lab) -> None:
    found = compare(results(lab, 40, "predictions_gpt-4_*.jsonl"))
    assert found["bird_ex"] >= 35
    assert 0 < found["right for BIRD"] < found["bird_ex"]


@pytest.mark.soak
@outside.needs(BIRD)
def test_all_published_answers_have_the_scores_of_the_references(lab: Lab) -> None:
    found = compare(results(lab, None, "predictions_*.jsonl"))
    for score, least in (("bird_ex", 700), ("bird_soft_f1", 700), ("spider_execution", 700), ("defog_subset", 200)):
        assert found[score] >= least
