"""Evaluations are published together at the end of a command; what a crash before that leaves is made up for."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from eval_pipeline.core.errors import LockedError, StoreError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.runs.publication import Publication, not_filled, publish_record
from eval_pipeline.operations.upkeep.completing import complete_left
from eval_pipeline.stages import publishing
from eval_pipeline.store.durable import locked
from eval_pipeline.store.published.publisher import PublishResult
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.store.tables import EVIDENCE, STATISTICS
from eval_pipeline.tracks.scored.turns_table import turns_table
from eval_pipeline.workspace.noting import note_files
from eval_pipeline.workspace.noting.commands import Command, lag, left_behind
from eval_pipeline.workspace.progress import SILENT
from eval_pipeline.workspace.runs import RunContext, record_run, run_rows
from eval_pipeline_plugins.tracks.finqa.track import TRACK
from eval_pipeline_tests.killing import killed_at
from eval_pipeline_tests.support import DAY, TWO_CASES, Lab

PLACES = {name: Partition(name, "oracle", DAY) for name in ("a", "b", "c")}


@pytest.fixture
def three(lab: Lab, module_folder: Path) -> Lab:
    """Three evaluations on record; only `c` is published, without which a store would be built of all that is whole."""

    def make(empty: Lab) -> None:
        empty.versions({"name": "oracle", "provider": "oracle"})
        for name in reversed(PLACES):
            empty.suite(name, TWO_CASES[:1])
            empty.evaluate(name, "oracle", publish=name == "c")

    return lab.made_once(module_folder / "kept", make)


def closed(lab: Lab, *suites: str) -> Publication:
    publication = Publication(lab.workspace(), Command(lab.home, "run"))
    for name in suites:
        publication.close(lab.inputs(name, "oracle", run=RunContext("run")))
    return publication


def dies(publication: Publication) -> None:
    """The kernel lets go of the locks of a dead process."""
    publication.command._note._file.close()  # type: ignore[union-attr]


def left(lab: Lab) -> list[Partition]:
    with left_behind(lab.home) as (found, _):
        return [place for one in found for place in one.noted.unpublished]


def published(lab: Lab) -> str:
    return "".join(suite for (suite,) in lab.sql("SELECT DISTINCT suite FROM turn_results ORDER BY ALL"))


def file_of(lab: Lab, table: object, suite: str) -> Path:
    return lab.workspace().record.path(table, RecordKey.of(PLACES[suite]))  # type: ignore[arg-type]


def test_evaluations_that_are_closed_are_published_together(three: Lab, copies: list[Path]) -> None:
    publication = closed(three, *PLACES)
    assert published(three) == "c"
    assert left(three) == [], "their process is alive"
    publication.publish()
    publication.publish()
    assert (published(three), copies) == ("abc", [three.home.store])
    assert all(isinstance(publication.outcome[place], PublishResult) for place in PLACES.values())
    assert {status for (status,) in three.sql("SELECT status FROM runs")} == {"complete"}
    (note,) = three.home.commands.iterdir()
    assert '{"published": true}' in note.read_text()


def test_what_a_crash_left_is_published_and_compared_by_the_next_command(three: Lab, copies: list[Path]) -> None:
    dies(closed(three, "a", "b"))
    assert left(three) == [PLACES["a"], PLACES["b"]]
    assert complete_left(three.workspace()) == []
    assert (published(three), len(copies)) == ("abc", 1)
    assert three.sql("SELECT suite FROM trends WHERE compared ORDER BY ALL") == [("a",), ("b",)]
    assert left(three) == []


@pytest.mark.parametrize("name", ["run", "rescore"])
def test_what_a_run_had_made_when_it_was_killed_is_published_and_compared_though_it_was_not_noted(
    three: Lab, name: str
) -> None:
    publication = Publication(three.workspace(), Command(three.home, name))
    publication.command.note_run("run", [PLACES["a"]])
    dies(publication)
    assert complete_left(three.workspace()) == []
    assert published(three) == "ac"
    assert three.sql("SELECT suite FROM trends WHERE compared ORDER BY ALL") == [("a",)]


def test_a_store_that_another_process_keeps_locked_stops_no_command_and_is_published_by_the_next(
    three: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(*_: object, **__: object) -> PublishResult:
        raise LockedError("another process has locked it")

    dies(closed(three, "a"))
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "publish", held)
        (problem,) = complete_left(three.workspace())
    assert problem == "what an interrupted command left is not published yet: another process has locked it"
    assert complete_left(three.workspace()) == []
    assert (published(three), left(three)) == ("ac", [])


def test_query_and_doctor_tell_that_the_store_lags_behind(three: Lab) -> None:
    assert three.cli("query", "SELECT 1").err == ""
    dies(closed(three, "a", "b"))
    sentence = f"the store lags behind the record: a run ended before it published a · oracle · {DAY} and 1 more"
    said = three.cli("query", "SELECT 1")
    expected = f"note: {sentence}; the next run or `eval-pipeline publish` makes up for it\n"
    assert (said.code, said.err) == (0, expected)
    said = three.cli("doctor")
    assert (said.code, sentence in " ".join(said.text.split())) == (1, True)
    assert three.cli("publish").code == 0
    assert published(three) == "abc"
    assert three.cli("query", "SELECT 1").err == ""


@pytest.mark.always
def test_a_note_that_is_torn_or_of_something_damaged_holds_nothing_up(three: Lab, copies: list[Path]) -> None:
    dies(closed(three, "a", "b"))
    (note,) = three.home.commands.iterdir()
    note.write_text(note.read_text() + '["c", "ora')
    damaged = file_of(three, STATISTICS, "a")
    damaged.write_bytes(damaged.read_bytes()[:-9])
    (problem,) = complete_left(three.workspace())
    assert problem.startswith("a: ") and str(damaged) in problem
    assert (published(three), len(copies)) == ("bc", 1)
    assert left(three) == [], "`doctor` tells of the damage"


def test_one_that_is_damaged_stops_no_other_and_has_failed(three: Lab) -> None:
    publication = closed(three, *PLACES)
    damaged = file_of(three, EVIDENCE, "b")
    damaged.write_bytes(damaged.read_bytes()[:-9])
    publication.publish()
    assert published(three) == "ac"
    failed = publication.outcome[PLACES["b"]]
    assert isinstance(failed, StoreError)
    assert str(damaged) in str(failed)
    assert [row["status"] for row in run_rows(three.workspace(), PLACES["b"])] == ["failed"]
    for name in "ac":
        assert [row["status"] for row in run_rows(three.workspace(), PLACES[name])] == ["complete"]
    assert three.sql("SELECT suite, status FROM runs ORDER BY ALL") == [("a", "complete"), ("c", "complete")]


def test_all_wait_once_for_a_store_that_another_process_keeps_locked(
    three: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = list[float]()

    def held(*_: object, **__: object) -> PublishResult:
        waited.append(600.0)
        raise LockedError("another process has locked it")

    monkeypatch.setattr(publishing, "publish", held)
    publication = closed(three, *PLACES)
    publication.publish()
    assert len(waited) == 1
    assert {type(told) for told in publication.outcome.values()} == {LockedError}
    for place in PLACES.values():
        assert [row["status"] for row in run_rows(three.workspace(), place)] == ["failed"]


def test_what_another_run_changes_before_the_end_must_be_whole_to_be_published(three: Lab) -> None:
    publication = closed(three, *PLACES)
    place = PLACES["a"]
    record_run(three.workspace(), place, "another")  # still all of one piece
    file_of(three, EVIDENCE, "b").unlink()  # as a run leaves it that is just asking again
    publication.publish()
    assert published(three) == "ac"
    assert isinstance(publication.outcome[place], PublishResult)
    refused = publication.outcome[PLACES["b"]]
    assert isinstance(refused, StoreError)
    assert f"b · oracle · {DAY} has no evidence yet; it is not published until a run has completed it" in str(refused)


def test_a_note_that_is_just_made_is_not_taken_for_one_that_was_left(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    @contextmanager
    def looked_at_before(path: Path, seconds: float) -> Iterator[int]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()  # as between the making of the file and its lock
        with monkeypatch.context() as patched:
            patched.setattr(note_files, "locked", locked)
            with left_behind(lab.home) as (found, _):
                seen.append(len(found))
        assert path.exists()
        with locked(path, seconds) as handle:
            yield handle

    monkeypatch.setattr(note_files, "locked", looked_at_before)
    command = Command(lab.home, "run")
    command.note({"unpublished": ["a", "oracle", "2026-03-01"]})
    monkeypatch.setattr(note_files, "locked", locked)
    assert seen == [0]
    with left_behind(lab.home) as (found, (living,)):
        assert (found, living.uncompared) == ([], ["a"]), "its process is alive"
    command.note({"published": True})
    command.note({"compared": "a"})
    command.settle()
    assert list(lab.home.commands.iterdir()) == [], "there was no run that Dagster could be told of"


def test_a_publishing_that_is_killed_is_completed_by_the_next_command(three: Lab) -> None:
    before = published(three)
    with killed_at("eval_pipeline.operations.runs.publication.publish_all"):
        publish_record(three.workspace(), full=False, progress=SILENT)
    assert lag(three.home) == "the command `publish` ended before it was done"
    assert complete_left(three.workspace()) == []
    assert (before, published(three), lag(three.home)) == ("c", "abc", "")


def test_publishing_tells_of_columns_that_the_evaluations_of_a_suite_do_not_know(
    three: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(not_filled(three.workspace())) == []
    monkeypatch.setattr(type(TRACK), "turn_columns", (*TRACK.turn_columns, Column("words", "BIGINT", "Of a test.")))
    said = list(not_filled(three.workspace()))
    assert [sentence.partition(":")[0] for sentence in said] == ["a", "b", "c"]
    assert all("finqa_turns" in one and "words" in one and "eval-pipeline rescore --suite" in one for one in said)


def test_of_each_series_the_first_and_the_newest_evaluation_tell_what_they_do_not_know(
    three: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at each of a thousand would take longer than to find that nothing is to be published."""
    record, before = three.workspace().record, turns_table(TRACK)
    keys = [RecordKey.of(replace(PLACES["a"], eval_date=DAY + timedelta(days))) for days in range(5)]
    rows = record.read(before, keys[0]).to_pydict()

    def write(table: Table, *chosen: RecordKey) -> None:
        for key in chosen:
            with record.writer(table, key, {}) as writer:
                writer.write(
                    {column.name: rows.get(column.name, [None] * len(rows["turn_id"])) for column in table.columns}
                )

    write(before, *keys)
    monkeypatch.setattr(type(TRACK), "turn_columns", (*TRACK.turn_columns, Column("words", "BIGINT", "Of a test.")))
    looked, known = set[RecordKey](), Record.known

    def noting(self: Record, table: Table, key: RecordKey) -> frozenset[str]:
        looked.add(key)
        return known(self, table, key)

    monkeypatch.setattr(Record, "known", noting)
    for chosen, told in (((), "abc"), (keys[-1:], "abc"), (keys[:1], "bc")):
        write(turns_table(TRACK), *chosen)
        looked.clear()
        assert [sentence[0] for sentence in not_filled(three.workspace())] == [*told]
        assert {key for key in looked if key.suite == "a"} == {keys[0], keys[-1]}
