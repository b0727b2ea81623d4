"""What is kept of comparisons: exactly what a change can affect is compared again, and a lookup is never wrong."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.fingerprints.fingerprints import Fingerprint, Fingerprints
from eval_pipeline_plugins.tracks.sql.responses import evidence
from eval_pipeline_plugins.tracks.sql.responses.execute import SqlExecutor
from eval_pipeline_plugins.tracks.sql.track import TRACK
from eval_pipeline_tests.support import DAY, Lab, Puppet
from eval_pipeline_tests.tracks.sql.helpers import (
    OSLO,
    OTHER_WORDS,
    TOTALS,
    WRONG,
    answer,
    shop_lab,
    write_shop,
)

PUPPET = {"name": "puppet", "provider": "puppet"}
CASES = ({**OSLO, "database": "shop"}, {**TOTALS, "database": "shop"}, {**OSLO, "id": "far", "database": "mart"})
ANSWERS = {"oslo": answer(OTHER_WORDS), "far": answer(WRONG)}
EVERY = ["far", "oslo", "totals"]
TIMED = ["shop/oslo#0", "shop/totals#0"]
ROWS = (
    "SELECT case_id, turn_id, sample, kind, verdict, value, details FROM evidence "
    "WHERE kind <> 'efficiency' ORDER BY ALL"
)


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


@pytest.fixture
def night(lab: Lab, module_folder: Path, puppet: type[Puppet]) -> Lab:
    """A home with one night, and what it takes to have another."""
    Puppet.answer = staticmethod(lambda call: ANSWERS.get(call.case_id.removeprefix("b-"), call.gold.oracle()))

    def make(lab: Lab) -> None:
        shop_lab(lab, *CASES)
        place = write_shop(module_folder / "mart") / "databases" / "shop"
        place.rename(lab.home.data / "suites" / "shop" / "databases" / "mart")
        lab.versions(PUPPET, {**PUPPET, "name": "other"}, {**PUPPET, "name": "twice", "samples_per_turn": 2})
        lab.evaluate("shop", upto="evidence")

    return lab.made_once(module_folder / "kept", make)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The cases of which answers are validated, executed, compared and timed."""
    found: dict[str, list[str]] = {"validated": [], "executed": [], "compared": [], "timed": []}
    executes, compares, times = SqlExecutor.execute, evidence.compared_with_gold, evidence.efficiency
    validates = TRACK.validate

    def validate(artefact: Any, error: Any, case: Any) -> Any:
        found["validated"].append(case.id)
        return validates(artefact, error, case)

    async def execute(self: SqlExecutor, artefact: Any, case: Any) -> Any:
        found["executed"].append(case.id)
        return await executes(self, artefact, case)

    def compare(case: Any, *more: Any) -> Any:
        found["compared"].append(case.id)
        return compares(case, *more)

    def timed(turn: Any, *more: Any) -> Any:
        pieces = times(turn, *more)
        found["timed"] += [turn.id] * len(pieces)
        return pieces

    monkeypatch.setattr(type(TRACK), "validate", lambda _, *given: validate(*given))
    monkeypatch.setattr(SqlExecutor, "execute", execute)
    monkeypatch.setattr(evidence, "compared_with_gold", compare)
    monkeypatch.setattr(evidence, "efficiency", timed)
    return found


def rewrite(lab: Lab, name: str, old: str, new: str) -> None:
    path = lab.home.data / "suites" / "shop" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def entries(lab: Lab, kind: str) -> list[Path]:
    return sorted(lab.home.expected.glob(f"{kind}-*"))


def flip(lab: Lab) -> None:
    """Turns a bit in the middle of one outcome, and of all else that is kept."""
    (outcome,) = [one for one in entries(lab, "outcome") if "c.name" in one.read_text()]
    for path in (outcome, *(path for kind in ("evidence", "validation", "measured") for path in entries(lab, kind))):
        whole = bytearray(path.read_bytes())
        whole[len(whole) // 2] ^= 1
        path.write_bytes(whole)


def swap(lab: Lab) -> None:
    """Puts each entry below the name of another one."""
    for kind in ("outcome", "evidence", "validation", "measured"):
        places = entries(lab, kind)
        texts = [place.read_text() for place in places]
        for place, text in zip(places, texts[1:] + texts[:1], strict=True):
            place.write_text(text)


def other_library(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Has one library another version while the test lasts."""
    real = Fingerprints.of

    def of(self: Fingerprints, *roots: Any) -> Fingerprint:
        found = real(self, *roots)
        return replace(found, libraries={**found.libraries, **({name: "9"} if name in found.libraries else {})})

    monkeypatch.setattr(Fingerprints, "of", of)


def other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [*os.uname()]
    monkeypatch.setattr(os, "uname", lambda: (told[0], "another", *told[2:]))


def other_answer() -> None:
    told = {**ANSWERS, "totals": answer("SELECT city FROM customers")}
    Puppet.answer = staticmethod(lambda call: told.get(call.case_id, call.gold.oracle()))


@pytest.mark.parametrize(
    ("change", "executed", "compared", "timed"),
    [
        pytest.param(lambda lab, patch: None, [], [], [], id="nothing"),
        pytest.param(
            lambda lab, patch: rewrite(lab, "databases/mart/customers.csv", "4,Di,,d", "4,Di,Oslo,d"),
            ["far"],
            ["far"],
            [],
            id="one-cell",
        ),
        pytest.param(
            lambda lab, patch: rewrite(lab, "cases/oslo.yaml", "'Oslo'", "'Bergen'"), [], ["oslo"], [], id="one-gold"
        ),
        pytest.param(lambda lab, patch: other_answer(), ["totals"], ["totals"], [], id="one-answer"),
        pytest.param(lambda lab, patch: other_library(patch, "duckdb"), EVERY, EVERY, TIMED, id="a-library-of-both"),
        pytest.param(lambda lab, patch: other_library(patch, "numpy"), [], EVERY, TIMED, id="a-library-that-compares"),
        pytest.param(lambda lab, patch: other_library(patch, "pandas"), [], [], [], id="a-library-of-other-tracks"),
        pytest.param(lambda lab, patch: other_machine(patch), [], [], TIMED, id="another-machine"),
        pytest.param(lambda lab, patch: flip(lab), ["oslo"], EVERY, TIMED, id="damaged-entries"),
        pytest.param(lambda lab, patch: swap(lab), EVERY, EVERY, TIMED, id="entries-of-others"),
    ],
)
def test_exactly_what_a_change_affects_is_made_again(
    night: Lab,
    made: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Lab, pytest.MonkeyPatch], None],
    executed: list[str],
    compared: list[str],
    timed: list[str],
) -> None:
    before = night.sql(ROWS)
    change(night, monkeypatch)
    night.evaluate("shop", day=DAY + timedelta(days=1), epoch="anew", upto="evidence")
    assert (sorted(made["executed"]), sorted(made["compared"])) == (executed, compared)
    assert sorted(made["validated"]) == (EVERY if executed == ["oslo"] else executed), (
        "of an outcome that is damaged, all"
    )
    assert sorted(made["timed"]) == timed
    if compared in ([], EVERY) or executed == ["oslo"]:
        assert night.sql(ROWS) == sorted([*before, *before])


@pytest.mark.always
@pytest.mark.parametrize("version", ["other", "twice"])
def test_other_model_versions_and_samples_find_what_is_theirs(
    night: Lab, made: dict[str, list[str]], version: str
) -> None:
    before = night.sql(ROWS)
    night.evaluate("shop", version, upto="evidence")
    assert made["executed"] == made["compared"] == []
    samples = 2 if version == "twice" else 1
    assert made["timed"] == []
    mine = [(*row[:2], sample, *row[3:]) for row in before for sample in range(samples)]
    assert night.sql(ROWS) == sorted([*before, *mine])


def test_another_suite_finds_what_is_the_same_under_other_names(night: Lab, made: dict[str, list[str]]) -> None:
    before = night.sql(ROWS)
    suites = night.home.data / "suites"
    shutil.copytree(suites / "shop" / "databases", suites / "again" / "databases")
    night.suite("again", [{**one, "id": f"b-{one['id']}"} for one in CASES], track="sql", options={})
    night.evaluate("again", upto="evidence")
    assert made["executed"] == made["compared"] == []
    found = {(row[0].removeprefix("b-"), *row[2:]) for row in night.sql(ROWS) if row[1].startswith("again/b-")}
    assert found == {(row[0], *row[2:]) for row in before}
