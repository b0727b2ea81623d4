"""Notes of commands: what is due, torn lines, and how many are kept for Dagster."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.workspace.noting import note_files
from eval_pipeline.workspace.noting.commands import Command, ended, left_behind
from eval_pipeline.workspace.noting.noted import Noted, noted
from eval_pipeline_tests.support import DAY

PLACES = [Partition(suite, version, DAY) for suite in ("a", "b") for version in ("m", "n")]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home", tmp_path / "data")


def unpublished(place: Partition) -> dict[str, list[str]]:
    return {"unpublished": [place.suite, place.model_version, place.eval_date.isoformat()]}


@given(st.lists(st.one_of(st.sampled_from(PLACES), st.just("published"), st.sampled_from(["a", "b"]))))
def test_what_is_due_is_what_was_recorded_since(events: list[Partition | str]) -> None:
    entries: list[dict[str, object]] = []
    store, compared = set[Partition](), set[str]()
    for event in events:
        if isinstance(event, Partition):
            entries.append(dict(unpublished(event)))
            store.add(event)
            compared.add(event.suite)
        elif event == "published":
            entries.append({"published": True})
            store.clear()
        else:
            entries.append({"compared": event})
            compared.discard(event)
    found = Noted(tuple(entries))
    assert (set(found.unpublished), set(found.uncompared)) == (store, compared)
    assert noted("\n".join(map(json.dumps, entries))) == found


@pytest.mark.parametrize("rest", ["", '{"published": tr', "{}\n[]\n7\n"])
def test_what_follows_a_torn_line_is_read(home: Home, rest: str) -> None:
    command = Command(home, "run")
    command.note_run("r", PLACES[:1])
    command.note(unpublished(PLACES[0]))
    (path,) = home.commands.iterdir()
    del command  # as where its process is gone
    path.write_text(path.read_text() + rest)
    with left_behind(home) as ((left,), _):
        assert (left.noted.unpublished, left.noted.open_runs) == (PLACES[:1], {"r": PLACES[:1]})
        left.add({"run_ended": "r", "status": "failed"})
        left.settle()
    ((_, told, forget),) = ended(home)
    assert told.open_runs == {}
    forget()
    assert list(ended(home)) == []


def test_the_newest_notes_are_kept_for_dagster(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_files, "KEPT", 3)
    for number in range(5):
        command = Command(home, "run")
        command.note_run(str(number), PLACES[:1])
        command.settle()
    assert [list(told.runs) for _, told, _ in ended(home)] == [["2"], ["3"], ["4"]]


def test_a_run_of_dagsters_leaves_no_note_for_it_and_what_is_due_is_not_settled(home: Home) -> None:
    command = Command(home, "dagster")
    for entry in (unpublished(PLACES[0]), {"published": True}):
        command.note(entry)
        command.settle()
    assert command.noted.uncompared == ["a"]
    command.note({"compared": "a"})
    command.settle()
    assert (list(ended(home)), list(home.commands.iterdir())) == ([], [])
