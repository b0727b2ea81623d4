"""A decision that may ask only part of the suite: its schedule, and what it says at the end."""

import warnings
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eval_pipeline.analysis.aggregates.aggregate import Row
from eval_pipeline.analysis.draws.looks import Draw, KnownAnswers, schedule
from eval_pipeline.analysis.draws.rows import NOT_ALL, _traffic_row
from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.statistics.adaptive.looks import spending
from eval_pipeline.statistics.pairs.paired import paired_difference
from eval_pipeline.store.record import Record
from eval_pipeline.workspace.asked.draws import Candidate, Design, read_design, write_design

WITHIN = Until.parse("decided-against a within 30%")


def candidates(outcomes: str) -> tuple[Candidate, ...]:
    """Cases of one turn, with A's outcome of each."""
    return tuple(Candidate(f"c{i}", (f"s/c{i}#0",), (sign,)) for i, sign in enumerate(outcomes))


def drawn(a: str, b: str, rule: Until = WITHIN, clusters: int = 0) -> Draw:
    """The draw after all that the rule asks; turn by turn, A and B are right (1) or wrong (0)."""
    found = candidates(a)
    design = Design(rule, 7, schedule(rule, found), ("a 2026-03-01",), 0, found)
    cluster_of = {one.case_id: str(i % clusters) for i, one in enumerate(found)} if clusters else None
    answers = KnownAnswers({one.turns[0]: float(sign) for one, sign in zip(found, b, strict=True)}, {})
    draw = Draw.unasked(design)
    while not draw.stopped:
        design = design.with_batch(draw.next_batch())
        draw = Draw(design, answers, cluster_of)
    return draw


@pytest.mark.parametrize(
    ("cases", "rule", "expected"),
    [
        (400, "decided-against a within 30%", (12, 24, 42, 60, 84, 120)),
        (400, "decided-against a", (40, 80, 140, 200, 280, 400)),
        (50, "decided-against a within 30%", (10, 15)),
        (12, "decided-against a within 30%", (10,)),
        (8, "decided-against a within 30%", (8,)),
    ],
)
def test_the_last_look_is_at_the_part_that_the_rule_allows(cases: int, rule: str, expected: tuple[int, ...]) -> None:
    """By hand: 10, 20, 35, 50 and 70% of that part, at least ten cases, none beyond 90% of it but the part itself.

    Of a comparison the last look counts even if every case is asked by then, since it may err; of a share it does not.
    """
    found = candidates("1" * cases)
    plan = schedule(Until.parse(rule), found)
    assert plan == expected
    assert Design(Until.parse(rule), 0, plan, (), 0, found).looks == len(plan)
    whole = plan[-1] == cases
    assert Design(Until(half_width=0.05), 0, plan, (), None, found).looks == max(1, len(plan) - whole)


def test_equal_evaluations_are_left_undecided_and_a_broken_one_is_decided_before() -> None:
    outcomes = "".join(np.random.default_rng(1).choice(["0", "1"], 400, p=[0.2, 0.8]))
    draw = drawn(outcomes, outcomes)
    assert draw.stopped == "not decided within 30% of the cases (120 of 400)"
    assert [look.cases for look in draw.looks] == list(draw.design.schedule)
    assert {look.looks for look in draw.looks} == {6} and draw.looks[-1].verdict == "undecided"
    outcomes = "".join(np.random.default_rng(1).choice(["0", "1"], 400, p=[0.2, 0.8]))
    draw = drawn(outcomes, "".join("0" if i % 2 else sign for i, sign in enumerate(outcomes)))
    assert draw.stopped == "decided: worse than a" and draw.looks[-1].cases <= 60
    draw = drawn("10" * 6, "10" * 6)
    assert draw.stopped == "not decided within 30% of the cases (10 of 12)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert drawn("1" * 40, "1" * 40, AGAINST).stopped == "every case was asked: undecided against a"


AGAINST = Until.parse("decided-against a")


@pytest.mark.parametrize(("clusters", "verdict"), [(0, "worse"), (8, "undecided")])
def test_cases_of_a_cluster_do_not_decide_as_if_they_were_independent(clusters: int, verdict: str) -> None:
    """All 40 broken turns are of two of eight clusters."""
    a, b = "1" * 400, "0111" * 40 + "1" * 240
    assert drawn(a, b, AGAINST, clusters).looks[-1].verdict == verdict


@pytest.mark.parametrize(("number", "verdict"), [(2, "undecided"), (5, "undecided"), (6, "worse")])
def test_what_all_have_in_common_may_be_chance_if_they_are_few(number: int, verdict: str) -> None:
    """By the sign test: five of five are not rarer than 5% (2 / 2^5), six of six are, whether cases or clusters."""
    assert drawn("1" * number, "0" * number, AGAINST).looks[-1].verdict == verdict
    b = ("0" * number + "1" * number) * 10
    assert drawn("1" * len(b), b, AGAINST, number).looks[-1].verdict == verdict


def test_looks_spend_the_error_so_that_the_whole_suite_decides_less_often() -> None:
    a, b = "1" * 390 + "0" * 10, "1" * 380 + "0" * 10 + "1" * 2 + "0" * 8
    draw = drawn(a, b, AGAINST)
    first = Draw(draw.design.first(1), draw._answers)
    spent = spending(draw.design.schedule)
    low = first.looks[0].difference.low
    assert low == first._sampler.estimate(look=1, looks=6, spent=spent).low
    assert low < first._sampler.estimate(look=1, looks=6).low, "little is spent at the first look"
    # 10 of 400 turns broken, 2 fixed: p = 0.02 by t, which is not enough for the last of six looks.
    a, b = "1" * 390 + "0" * 10, "1" * 380 + "0" * 10 + "1" * 2 + "0" * 8
    assert (paired_difference(list(map(int, a)), list(map(int, b)), range(400)).p_value or 1) < 0.03
    draw = drawn(a, b, AGAINST)
    assert [look.looks for look in draw.looks] == [6] * 6 and not draw.design.left
    assert draw.stopped == "every case was asked: undecided against a"


@pytest.mark.parametrize(("method", "least"), [(1, 0.25), (2, 0.1)])
def test_a_draw_on_record_is_read_with_the_settings_that_it_was_drawn_with(
    method: int, least: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of 0.2.0, which named none: a quarter of a uniform draw at least, a tenth today."""
    history = ["000000"] * 30 + ["010101", "101010"] * 5 + ["111111"] * 60
    cases = tuple(Candidate(f"c{i}", (f"s/c{i}#0",), (told,)) for i, told in enumerate(history))
    names = tuple(f"m{i} 2026-03-01" for i in range(6))
    design = Design(Until.parse("±5pp"), 7, (10, 20, 40), names, None, cases, method=method)
    draw = Draw.unasked(design)
    assert draw._sampler._engine._uniform == least
    design = design.with_batch(draw.next_batch())
    if method == 1:
        write = Record.writer
        monkeypatch.setattr(Record, "writer", lambda own, table, key, told: write(
            own, table, key, {name: value for name, value in told.items() if name != "method"}
        ))  # fmt: skip
    record, place = Record(tmp_path), Partition("s", "a", date(2026, 3, 2))
    write_design(record, place, design)
    assert read_design(record, place) == design
    answers = KnownAnswers({case.turns[0]: 1.0 for case in cases}, {})
    assert Draw(design, answers).looks
    with pytest.raises(UsageError, match="another version drew them"):
        Draw(replace(design, method=3 - method), answers)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("budget", [0.5, 2.0])
def test_a_batch_of_dear_cases_fits_a_budget(seed: int, budget: float) -> None:
    """A quarter of the cases, among them some of the first ten, cost twenty times as much as the others."""
    found, rule = candidates("10" * 100), Until(usd=budget)
    costs = np.random.default_rng(seed).permutation([0.04] * 50 + [0.002] * 150)
    turns = [one.turns[0] for one in found]
    answers = KnownAnswers(dict.fromkeys(turns, 1.0), dict(zip(turns, map(float, costs), strict=True)))
    design = Design(rule, seed, schedule(rule, found), (), None, found)
    draw = Draw.unasked(design)
    while not draw.stopped:
        design = design.with_batch(draw.next_batch())
        draw = Draw(design, answers)
        assert draw.looks[-1].usd is not None and draw.looks[-1].usd <= budget
    assert draw.looks[-1].usd > budget - 0.04 and len(draw.looks) < 25


def test_the_share_of_traffic_weighs_strata_by_their_sizes() -> None:
    """By hand: (2 * 2/2 + 6 * 1/2) / 8; of a case that was not drawn nothing counts."""
    drawn = {"c1": ("a", 2), "c2": ("a", 2), "c3": ("b", 6), "c4": ("b", 6)}
    values = {"c1": 1.0, "c2": 1.0, "c3": 1.0, "c4": 0.0, "not drawn": 0.0}

    def row(cases: list[str]) -> Row:
        turns: Any = SimpleNamespace(results={"case_id": pa.array(cases)})
        return _traffic_row(turns, drawn, "correct", np.array([values[case] for case in cases]))

    found = row([*values])
    assert (found["n"], found["mean"], found["reason"]) == (4, pytest.approx(0.625), None)
    left_out = row(["c1", "c2", "c3"])
    assert (left_out["n"], left_out["mean"], left_out["reason"]) == (3, None, NOT_ALL)
