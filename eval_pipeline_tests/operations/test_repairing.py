"""`doctor --repair` and the scrub: what is damaged is told, set aside, and made again of what it was made of."""

import os
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline.asking.batches.intents import BatchIntents
from eval_pipeline.asking.batches.sqlite import SqliteBatchTable
from eval_pipeline.core.errors import DamagedFileError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.operations.upkeep import completing, repairing
from eval_pipeline.operations.upkeep.repairing import repair
from eval_pipeline.operations.upkeep.scrubbing import BYTES_A_SECOND, scrub
from eval_pipeline.store.parquet import writing
from eval_pipeline.store.parquet.reading import forget_verified
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import STATISTICS
from eval_pipeline_tests.killing import killed_at
from eval_pipeline_tests.store.samples import key_of, put
from eval_pipeline_tests.support import DAY, TWO_CASES, Lab, Puppet, case

RUN = ("run", "--no-report", "--eval-date", "2026-03-01")


def flip(path: Path, place: float = 0.5) -> None:
    """Changes a byte; the time of change stays."""
    status, data = path.stat(), bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 0x20
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    forget_verified()


@pytest.fixture
def done(small: Lab, module_folder: Path) -> Lab:
    def make(lab: Lab) -> None:
        assert lab.cli(*RUN).code == 0

    made = small.made_once(module_folder / "evaluated", make)
    Puppet.reset()
    return made


LOST = {"runs"}
APART = ({"generations", "statistics"}, {"recovery_attempts", "suites"}, {"cases"}, {"turn_results"}, LOST)
"""What others are made of, or tells of itself; the others are damaged together."""


def test_every_table_of_the_record_is_made_again_without_a_call(done: Lab, puppet: type[Puppet]) -> None:
    contents = done.store_contents()
    tables = {path.name for path in done.home.record.iterdir()}
    apart = set[str]().union(*APART)
    assert tables > apart
    for damaged in (tables - apart, *APART):
        paths = [done.record_file(name) for name in sorted(damaged)]
        before = {path: len(path.read_bytes()) for path in paths}
        for path in paths:
            flip(path)
        puppet.reset()
        said = done.cli("doctor", "--repair")
        assert not puppet.asked, damaged
        assert "Traceback" not in said.text
        assert done.store_contents() == contents, damaged
        assert said.code == (damaged == LOST), said.text
        for path in paths:
            if damaged == LOST:
                assert f"{path} cannot be made again: it tells of runs, which nothing else does" in said.out
            else:
                assert f"{path} is made again" in said.out
                assert len(path.read_bytes()) == pytest.approx(before[path], rel=0.1)
    assert done.cli(*RUN).code == 0


def test_what_was_paid_for_and_is_whole_is_not_paid_for_again(done: Lab, puppet: type[Puppet]) -> None:
    done.suite(cases=[*TWO_CASES, *(case(f"d{index:02}", ("add(50, 7)", 57.0)) for index in range(40))])
    assert done.cli(*RUN).code == 0
    for side in ("-wal", "-shm"):
        assert not Path(f"{done.home.journal}{side}").exists()
    data = done.home.journal.read_bytes()
    leaf = next(place for place in range(4096, len(data), 4096) if data[place] == 0x0D)
    done.home.journal.write_bytes(data[:leaf] + os.urandom(4096) + data[leaf + 4096 :])
    said = done.cli("doctor", "--repair")
    assert said.code == 0, said.text
    assert "whole responses are kept, the damaged file is" in said.out
    puppet.reset()
    assert done.cli(*RUN, "--eval-date", "2026-03-02").code == 0
    assert 0 < len(puppet.asked) < 30


@pytest.mark.parametrize("again", ["prune", "doctor --repair"])
def test_a_repair_that_is_killed_between_two_moves_loses_no_response(done: Lab, again: str) -> None:
    with closing(sqlite3.connect(done.home.journal)) as connection:
        kept = connection.execute("SELECT count(*) FROM responses").fetchone()[0]
        connection.execute("UPDATE responses SET body = X'00' WHERE rowid = (SELECT min(rowid) FROM responses)")
        connection.commit()
    with killed_at("eval_pipeline.operations.upkeep.repairing._set_aside", done=True):
        list(repair(done.workspace()))
    assert not done.home.journal.exists()
    said = done.cli(*again.split())
    assert said.code == 0, said.text
    with closing(sqlite3.connect(done.home.journal)) as connection:
        assert connection.execute("SELECT count(*) FROM responses").fetchone() == (kept - 1,)


@pytest.mark.always
def test_batches_outlive_the_repair_and_a_damaged_one_is_told(done: Lab) -> None:
    intents = BatchIntents(
        SqliteBatchTable(done.home.journal), ModelVersion(name="m", provider="anthropic", model="claude-x")
    )
    first, second = intents.claim(["a" * 64]), intents.claim(["b" * 64])
    assert first is not None
    assert second is not None
    intents.handed_in(first.id, "msgbatch_1")
    with closing(sqlite3.connect(done.home.journal)) as connection:
        connection.execute("UPDATE batches SET state = 'opeo' WHERE intent_id = ?", (second.id,))
        connection.commit()
    with pytest.raises(DamagedFileError, match=r"a batch in the journal .* is not as it was written; end all runs"):
        intents.claim(["a" * 64])
    assert "a batch is not as it was written" in done.cli("doctor").out
    said = done.cli("doctor", "--repair")
    assert said.code == 1
    assert "1 of 2 batches are not as they were written" in said.out
    assert [found.batch_id for found in intents.open()] == ["msgbatch_1"]
    assert intents.claim(["a" * 64]) is None, "it is in a batch"
    assert done.cli("doctor").code == 0


@pytest.mark.always
def test_what_cannot_be_made_again_is_said_with_the_reason(done: Lab) -> None:
    flip(done.record_file("generations"))
    done.home.journal.unlink()
    said = done.cli("doctor", "--repair")
    assert said.code == 1
    assert "would have to be asked again" in said.out
    assert "`eval-pipeline run`" in said.out


@pytest.mark.always
def test_the_scrub_tells_each_damage_in_a_sentence_and_takes_its_time(done: Lab) -> None:
    rests: list[float] = []
    assert list(scrub(done.workspace(), rests.append)) == []
    assert sum(rests) * BYTES_A_SECOND >= sum(path.stat().st_size for path in done.home.record.rglob("*.parquet"))
    paths = [done.record_file("statistics"), done.record_file("generations"), done.home.journal]
    for path in paths[:2]:
        flip(path)
    with done.home.journal.open("r+b") as file:
        file.seek(5000)
        file.write(bytes(3000))
    found = list(scrub(done.workspace(), rests.append))
    assert len(found) == 3
    for path in paths:
        (sentence,) = (sentence for sentence in found if str(path) in sentence)
        assert "doctor --repair" in sentence


def test_files_of_0_1_0_are_read_and_told(done: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(writing, "SEAL", "nothing")
        older.setattr(writing, "BLANK", "")
        older.setattr(writing, "sealed", lambda footer: footer)
        put(done.workspace().record, STATISTICS, key_of())
    forget_verified()
    assert done.workspace().record.read(STATISTICS, key_of()).num_rows
    assert "1 of them were written by 0.1.0 and have no digest in their footers" in done.cli("doctor").out


def test_a_killed_repair_goes_on_with_the_files_that_it_has_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(repairing, "_made_again", lambda workspace, *told: made.append(told) or ())
    files = [
        ["statistics", "s", "v", "2026-03-01"],
        ["model_versions", "", "v", None],
        ["of a plug-in that went", *"sv-"],
    ]
    repairing.finish(SimpleNamespace(), [{"files": files, "aside": "/aside"}], lambda *_: None, lambda *_: None)  # type: ignore[arg-type]
    ((aside, found),) = made
    assert aside == Path("/aside")
    assert [(table.name, key) for table, key in found] == [
        ("statistics", RecordKey("s", "v", date(2026, 3, 1))),
        ("model_versions", RecordKey("", "v", None)),
    ]


@pytest.mark.parametrize(("command", "scored"), [("rescore", ["whole"]), ("run", None)])
def test_of_a_killed_rescoring_what_was_begun_is_rescored(
    command: str, scored: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations that a run left in part are the next run's."""
    called: list[list[str]] = []
    monkeypatch.setattr(completing, "_RESCORING", lambda workspace, places, _: called.append([p.suite for p in places]))
    monkeypatch.setattr(completing, "gate", lambda workspace: lambda key: key.suite == "whole")
    places = [Partition(suite, "v", DAY) for suite in ("whole", "part")]
    left: Any = SimpleNamespace(noted=SimpleNamespace(due=[], command=command, open_runs={"r": places}))
    completing._finish(SimpleNamespace(), left, SimpleNamespace(), lambda *_: None)  # type: ignore[arg-type]
    assert called == ([] if scored is None else [scored])
