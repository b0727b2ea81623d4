"""Bad input, second half: full disks, damaged files, foreign locks. Nothing is lost, `doctor` says what to do."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eval_pipeline.core.errors import StoreError
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline_tests.chains import compared
from eval_pipeline_tests.support import TWO_CASES, Lab, Puppet, case

RUN = ("run", "--no-report", "--eval-date", "2026-03-01")


def damage(path: Path, share: float = 0.5, count: int = 64) -> None:
    data = bytearray(path.read_bytes())
    start = int(len(data) * share)
    data[start : start + count] = bytes(byte ^ 0xFF for byte in data[start : start + count])
    path.write_bytes(bytes(data))


@contextmanager
def limited(size: int) -> Iterator[None]:
    """Makes writing beyond a size fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def simulated(lab: Lab) -> Lab:
    lab.suite(cases=[case(f"c{i}", ("50", 50.0), ("add(50, 7)", 57.0)) for i in range(30)])
    lab.versions({"name": "stand-in", "provider": "oracle"})
    return lab


@pytest.mark.parametrize("size", [2_000, 60_000, 200_000])
def test_a_full_disk_is_told_with_the_file_and_the_next_run_ends_well(simulated: Lab, size: int) -> None:
    """No file may grow beyond a size: first the journal fails, then the record, then the store."""
    with limited(size), pytest.raises(StoreError) as caught:
        simulated.evaluate("small", "stand-in", publish=True)
    assert str(simulated.home.root) in str(caught.value)
    assert "nothing recorded" in str(caught.value)
    assert not list(simulated.home.root.rglob("*.tmp"))
    assert not simulated.home.store.exists()
    simulated.evaluate("small", "stand-in", publish=True)
    assert simulated.one("SELECT count(*) FROM turn_results WHERE correct") == 60


def test_a_full_disk_is_one_sentence_of_the_command_too(simulated: Lab) -> None:
    with limited(20_000):
        said = simulated.cli(*RUN)
    assert said.code != 0
    assert "Traceback" not in said.err
    assert str(simulated.home.root) in said.err
    assert "fault of eval-pipeline" not in said.err


def test_doctor_looks_at_everything_on_a_full_disk_and_has_no_journal_thrown_away(simulated: Lab) -> None:
    assert simulated.cli(*RUN).code == 0
    with open_instance(simulated.home):
        pass  # makes Dagster's files
    for path in (simulated.home.journal, simulated.home.dagster / "history" / "runs.db"):
        Path(f"{path}-shm").unlink(missing_ok=True)  # SQLite has to make it anew even to read
    with limited(100):
        said = simulated.cli("doctor")
    assert said.code == 1
    assert " disk: " in said.out
    assert "FAIL runs: cannot use Dagster's files below" in said.out
    assert "FAIL journal: " in said.out
    assert "move" not in said.out
    assert "ok   record: " in said.out
    assert simulated.cli("doctor").code == 0
    (simulated.home.dagster / "history" / "runs.db").write_text("no database")
    said = simulated.cli("doctor")
    assert said.code == 1
    assert "FAIL runs: a file of Dagster's below" in said.out
    assert "ok   store: " in said.out


def test_a_damaged_file_of_the_record_is_named_and_made_again_once_removed(
    published: Lab, puppet: type[Puppet]
) -> None:
    contents = published.store_contents()
    path = published.record_file("generations")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    said = published.cli(*RUN)
    assert said.code != 0
    assert str(path) in said.err
    assert "Traceback" not in said.err
    assert published.store_contents() == contents  # what was published stays
    doctor = published.cli("doctor")
    assert doctor.code == 1
    line = next(line for line in doctor.out.splitlines() if line.startswith("FAIL record"))
    assert str(path) in line
    assert "`eval-pipeline doctor --repair` restores what can be restored and lists the rest" in line
    puppet.reset()
    repaired = published.cli("doctor", "--repair")
    assert repaired.code == 0, repaired.text
    assert f"{path} is made again" in repaired.out
    assert not puppet.asked  # the journal has them
    assert published.store_contents() | {"compared_trends": ""} == contents | {
        "compared_trends": ""
    }  # repairing compares, too
    assert list(published.home.root.glob("damaged/*/record/generations/**/part.parquet")), "what was there is kept"


def test_damaged_pages_of_a_record_file_are_not_published(small: Lab) -> None:
    """The footer is whole, so that only reading the rows can tell."""
    small.evaluate()
    path = small.record_file("turn_results")
    damage(path, share=0.1, count=200)
    with pytest.raises(StoreError, match="turn_results"):
        small.evaluate(publish=True)
    doctor = small.cli("doctor")
    assert doctor.code == 1
    assert str(path) in doctor.out


@pytest.mark.always
def test_a_damaged_file_of_one_model_version_stops_no_other(small: Lab) -> None:
    small.versions({"name": "fine", "provider": "oracle"}, {"name": "hurt", "provider": "oracle"})
    small.evaluate(version="hurt", publish=True)
    path = small.record_file("turn_results")
    damage(path, share=0.1, count=200)
    said = small.cli(*RUN)
    assert said.code == 1
    assert f"small, hurt: {path} is damaged" in said.err
    assert ("fine",) in small.sql("SELECT DISTINCT model_version FROM turn_results")
    assert "fine" in said.out


def test_a_damaged_journal_is_named_and_set_aside(published: Lab, puppet: type[Puppet]) -> None:
    contents = published.store_contents()
    published.home.journal.write_bytes(b"SQLite format 3\0" + b"\x5a" * 8000)
    for side in ("-wal", "-shm"):
        Path(f"{published.home.journal}{side}").unlink(missing_ok=True)
    published.suite(cases=[*TWO_CASES, case("gamma", ("7", 7.0))])
    said = published.cli(*RUN)
    assert said.code != 0
    assert str(published.home.journal) in said.err
    assert "doctor" in said.err
    doctor = published.cli("doctor")
    line = next(line for line in doctor.out.splitlines() if line.startswith("FAIL journal"))
    assert "`eval-pipeline doctor --repair` restores what can be restored" in line
    # The suite as it is now, and what its evaluations before come to, are published all the same.
    of_the_suite = {"suites", "cases", "turns", "suite_editions", "compared_trends"}
    found = published.store_contents()
    assert {name for name in contents if found[name] != contents[name]} == of_the_suite
    repaired = published.cli("doctor", "--repair")
    assert "0 whole responses are kept" in repaired.out
    assert list(published.home.root.glob("damaged/*/journal.sqlite"))
    published.evaluate(publish=True)
    assert published.one("SELECT count(*) FROM turn_results WHERE correct") == 4


def test_a_damaged_store_is_named_by_query_and_made_anew_by_publish(published: Lab) -> None:
    compared(published.workspace(), "small")
    published.stage("published")
    contents = published.store_contents()
    published.home.store.write_bytes(b"not a store" * 1000)
    said = published.cli("query", "SELECT 1")
    assert said.code == 2
    assert str(published.home.store) in said.err
    assert "publish --full" in said.err
    doctor = published.cli("doctor")
    assert doctor.code == 1
    assert "FAIL store" in doctor.out
    assert "publish --full" in doctor.out
    said = published.cli("publish", "--full")
    assert said.code == 0, said.text
    assert published.store_contents() == contents
    assert published.cli("doctor").code == 0
    # A lost one is made anew by the next run as well.
    published.home.store.unlink()
    published.evaluate(publish=True)
    assert published.store_contents() == contents


def test_a_store_that_another_program_holds_open(published: Lab) -> None:
    """Publishing goes on beside it, since it renames a new file over; reading in place says who is in the way."""
    program = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, str(published.home.store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as foreign:
        assert foreign.stdin is not None
        assert foreign.stdout is not None
        assert foreign.stdout.readline() == "open\n"
        said = published.cli("query", "SELECT 1")
        assert said.code == 2
        assert f"another program has {published.home.store} open for writing" in said.err
        assert "FAIL store" in published.cli("doctor").out
        published.suite(cases=[*TWO_CASES, case("gamma", ("7", 7.0))])
        published.evaluate(publish=True)
        assert published.one("SELECT count(*) FROM turn_results") == 4
        foreign.stdin.close()
    assert published.one("SELECT count(*) FROM turn_results") == 4
    assert published.cli("query", "SELECT 1").code == 0
