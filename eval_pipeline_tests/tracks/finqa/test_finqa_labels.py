"""How far failure modes agree with what people say of the same answers; golden/finqa_agreement.md has what is found."""

import hashlib
from collections import Counter
from functools import cache
from typing import Any

import pytest

from eval_pipeline.statistics.raters.agreement import Agreement, cohens_kappa
from eval_pipeline_plugins.data_sets.convfinqa import page_of
from eval_pipeline_plugins.tracks.finqa import FAILURE_MODES
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.support import ROOT

from .helpers import scored
from .planted import mode_of_slip, planted_failures

LABELS: dict[str, list[dict[str, Any]]] = golden("finqa_failure_labels.yaml")
HALVES = ("tuning", "reported")
SLIPS: dict[str, list[dict[str, Any]]] = golden("finqa_planted_labels.yaml")
BY_HAND: dict[str, list[dict[str, Any]]] = golden("finqa_slip_labels.yaml")
_TUNED = {page_of(row["case"]) for row in LABELS["tuning"]}
_RECORDED = LABELS | {
    "reported, other documents": [row for row in LABELS["reported"] if page_of(row["case"]) not in _TUNED]
}
SETS = {
    **_RECORDED,
    **{f"bare, {half}": [row | {"bare": True} for row in rows] for half, rows in _RECORDED.items()},
    **{f"slips, {half}": rows for half, rows in SLIPS.items()},
    **{f"by hand, {half}": rows for half, rows in BY_HAND.items()},
}


@cache
def _modes(bare: bool = False) -> dict[tuple[str, str, int], str]:
    """What the product says of every wrong turn of both runs, also without their calculations."""
    return {
        (run, case, turn): values["failure_mode"]
        for run in "ab"
        for (case, turn), values in scored(run, bare=bare).items()
        if not values["numerical_match"]
    }


def _said(half: str, who: str) -> list[str]:
    return [_mode(row) if who == "product" else row[who] for row in SETS[half]]


def _mode(row: dict[str, Any]) -> str:
    if "run" in row:
        return _modes("bare" in row)[row["run"], row["case"], row["turn"]]
    if "said" in row:
        return mode_of_slip(row["case"], row["said"])
    mode: str = planted_failures()[row["case"]][1]["failure_mode"]
    return mode


def _agreement(half: str, one: str, other: str) -> Agreement:
    numbers = {mode: number for number, mode in enumerate(FAILURE_MODES)}
    pages = {page: number for number, page in enumerate(dict.fromkeys(page_of(row["case"]) for row in SETS[half]))}
    codes = [pages[page_of(row["case"])] for row in SETS[half]]
    first, second = ([numbers[mode] for mode in _said(half, who)] for who in (one, other))
    return cohens_kappa(first, second, codes)


def _line(half: str, one: str, other: str) -> str:
    found = _agreement(half, one, other)
    assert found.kappa is not None
    same = sum(a == b for a, b in zip(_said(half, one), _said(half, other), strict=True))
    ends = "" if found.low is None or found.high is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"| {half} | {one} and {other} | {same} of {found.n} | {same / found.n:.1%} | {found.kappa:.2f}{ends} |"


def _differences(half: str) -> list[str]:
    pairs = Counter(zip(_said(half, "label"), _said(half, "product"), strict=True))
    return [
        f"| {half} | {label} | {mode} | {count} |" for (label, mode), count in sorted(pairs.items()) if label != mode
    ]


def test_the_split_is_by_the_case_id_and_every_label_is_a_mode() -> None:
    for half in HALVES:
        for row in LABELS[half]:
            assert row.keys() == {"run", "case", "turn", "first", "second", "label"}
            even = hashlib.sha256(row["case"].encode()).digest()[0] % 2 == 0
            assert even is (half == "tuning")
            assert {row["first"], row["second"], row["label"]} <= set(FAILURE_MODES)
            assert row["first"] == row["second"] or row["label"] in FAILURE_MODES
    places = [(row["run"], row["case"], row["turn"]) for half in HALVES for row in LABELS[half]]
    assert len(set(places)) == len(places) >= 150


@pytest.mark.parametrize("halves", [SLIPS, BY_HAND], ids=["slips", "by hand"])
def test_no_document_is_in_both_halves_of_the_slips(halves: dict[str, list[dict[str, Any]]]) -> None:
    pages = {half: [page_of(row["case"]) for row in rows] for half, rows in halves.items()}
    for half, found in pages.items():
        assert len(set(found)) == len(found)
        assert {hashlib.sha256(page.encode()).digest()[0] % 2 == 0 for page in found} == {half == "tuning"}
    assert sum(map(len, pages.values())) >= 80


def test_every_wrong_answer_is_labelled() -> None:
    labelled = {(row["run"], row["case"], row["turn"]) for half in HALVES for row in LABELS[half]}
    assert labelled >= set(_modes()) - _unread()
    assert set(_modes()) >= labelled


def _unread() -> set[tuple[str, str, int]]:
    """Wrong turns that the labels lack."""
    return {(run, case, turn) for run in "ab" for (case, turn), found in scored(run).items() if found["no_answer"]}


@pytest.mark.parametrize("half", SETS)
def test_failure_modes_agree_with_the_labels(half: str) -> None:
    found = _agreement(half, "label", "product")
    assert found.observed is not None
    assert found.kappa is not None
    assert found.observed >= 0.85, _differences(half)
    assert found.kappa >= 0.8


@pytest.mark.parametrize("half", SETS)
def test_the_docs_publish_what_is_found(half: str) -> None:
    docs = (ROOT / "eval_pipeline_tests" / "golden" / "finqa_agreement.md").read_text(encoding="utf-8")
    wanted = [_line(half, "first", "second"), _line(half, "label", "product")]
    if half.startswith("bare"):
        del wanted[0]  # the labels of the same answers
    if "other documents" not in half:
        wanted += _differences(half)
    missing = [line for line in wanted if line not in docs]
    assert not missing, missing
