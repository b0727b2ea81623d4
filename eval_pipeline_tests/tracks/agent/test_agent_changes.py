"""The page of a turn shows what an attempt has changed: texts by lines, databases by rows, others by size."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline.core.model import Evidence, Ran
from eval_pipeline.sandbox.world.changes import ChangedFile
from eval_pipeline.tracks.shown.cards import Card, CardCell, CodeCard, TableCard
from eval_pipeline_plugins.tracks.agent.cases.worlds import WorldDatabase, WorldOfSuite
from eval_pipeline_plugins.tracks.agent.changes import changes


@pytest.fixture
def world(tmp_path: Path) -> WorldOfSuite:
    files = tmp_path / "files"
    files.mkdir()
    (files / "notes.md").write_text("one\ntwo\nthree\n")
    (files / "picture.png").write_bytes(b"\x89\0\xff")
    (tmp_path / "secret").write_text("not of the world")
    return WorldOfSuite("shop", "", {"shop": WorldDatabase(file="shop.sqlite")}, "", tmp_path)


def cards(world: WorldOfSuite, end_state: dict[str, Any], *evidence: Evidence) -> list[Card]:
    attempt = SimpleNamespace(outcome=Ran({"end_state": end_state}))
    case = SimpleNamespace(context=SimpleNamespace(world=world))
    return list(changes(SimpleNamespace(attempts=[attempt], case=case, evidence=evidence)))


def written(body: bytes) -> Any:
    return ChangedFile("file", body).as_json()


def shown(found: list[Card]) -> dict[str, str]:
    (table,) = (card for card in found if isinstance(card, TableCard))
    cells = {str(path): cell for path, cell in table.rows}
    return {path: f"{cell.text} {cell.note}" if isinstance(cell, CardCell) else cell for path, cell in cells.items()}


def test_a_text_is_shown_by_the_lines_that_differ(world: WorldOfSuite) -> None:
    found = cards(world, {"notes.md": written(b"one\n2\nthree\n"), "out/n.csv": written(b"n\n7\n")})
    assert shown(found) == {"notes.md": "a text +1 −1 lines", "out/n.csv": "a new text +2 −0 lines"}
    codes = {card.title: card.code for card in found if isinstance(card, CodeCard)}
    assert codes["notes.md"].splitlines()[1:] == [" one", "-two", "+2", " three"]
    assert codes["out/n.csv"].splitlines()[1:] == ["+n", "+7"]


def test_what_is_removed_is_shown_and_other_files_have_sizes(world: WorldOfSuite) -> None:
    state = {
        "notes.md": None,
        "picture.png": written(b"\x89\0" * 600),
        "big": {"left_out": True},
        "p": {"link": "/etc"},
    }
    found = cards(world, state)
    assert shown(found) == {
        "big": "too large to be kept",
        "notes.md": "a text +0 −3 lines",
        "p": '{"link":"/etc"}',
        "picture.png": "1,200 bytes, before 3",
    }
    assert [card.title for card in found if isinstance(card, CodeCard)] == ["notes.md"]


def test_a_long_text_is_no_difference_and_a_long_difference_is_cut(world: WorldOfSuite) -> None:
    found = cards(world, {"a": written(b"x\n" * 3_000), "b": written(b"y" * 5_000)})
    assert shown(found)["a"] == "6,000 bytes"
    (code,) = (card.code for card in found if isinstance(card, CodeCard))
    assert len(code) < 4_200 and "the first 4,000 are shown" in code


def test_a_database_is_told_by_the_check_of_its_rows(world: WorldOfSuite) -> None:
    state = {"shop.sqlite": written(b"SQLite format 3\0")}
    words = "left.csv was not written; shop.orders: 1 row is missing, e.g. (2)"
    wrong = Evidence("t", 0, "state", "failed", 0.0, {"check": 0, "words": words})
    assert shown(cards(world, state, wrong)) == {"shop.sqlite": "shop.orders: 1 row is missing, e.g. (2)"}
    right = Evidence("t", 0, "state", "passed", 1.0, {"check": 0, "words": ""})
    assert shown(cards(world, state, right)) == {"shop.sqlite": "a database, as the solution leaves it"}
    assert shown(cards(world, state)) == {"shop.sqlite": "a database"}


@pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "a\0b", "x" * 5_000])
def test_nothing_outside_the_world_is_read(world: WorldOfSuite, path: str) -> None:
    assert world.began(path) is None
    assert "not of the world" not in repr(cards(world, {path: written(b"new\n")}))


def test_who_changed_nothing_has_no_card(world: WorldOfSuite) -> None:
    assert cards(world, {}) == []
