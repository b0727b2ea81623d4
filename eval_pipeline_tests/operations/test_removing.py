"""Leaving: what a removal takes, what it leaves, and that after a purge no byte of a response is found anywhere."""

import pkgutil
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.workspace.runs import COMPLETE, partition_lock, record_run
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests.operations.leaving import MARKER, NEXT, names_in, places_of, removed
from eval_pipeline_tests.support import DAY, Lab, Puppet, command


def test_a_purge_leaves_no_byte_of_the_responses_anywhere(home: Lab) -> None:
    before = places_of(home.home.root, MARKER)
    kinds = {place.split("/")[0] for place in before}
    assert {"record", "reports", "eval.duckdb", "journal.sqlite"} <= kinds, "the search finds it where it is"
    said = command("remove", "--model-version", "leaving", "--purge", "--yes")
    assert said.code == 0, said.text
    assert places_of(home.home.root, MARKER) == []
    assert {"record", "reports", "eval.duckdb", "journal.sqlite"} <= {
        place.split("/")[0] for place in places_of(home.home.root, "plain words")
    }, "what the other one said is still there"
    for table in ("attempts", "turn_results", "trends", "model_versions", "runs", "model_comparisons"):
        assert names_in(home, table) <= {"staying"}, table
    assert not (home.home.root / "removing").exists()


def test_what_stays_is_as_it_was_and_is_not_asked_again(home: Lab) -> None:
    before = home.sql("SELECT * FROM attempts WHERE model_version = 'staying' ORDER BY ALL")
    removed(home)
    assert home.sql("SELECT * FROM attempts ORDER BY ALL") == before
    Puppet.reset()
    assert command("run", "--suite", "small", "--model-version", "staying", "--eval-date", str(NEXT)).code in {0, 1}
    assert Puppet.asked == []


def test_without_a_purge_the_journal_keeps_what_was_paid_for(home: Lab) -> None:
    done = removed(home, purge=False)
    assert done.purged is None
    assert len(done.partitions) == 3
    assert names_in(home, "turn_results") == {"staying"}
    left = {place.split("/")[0] for place in places_of(home.home.root, MARKER)}
    assert left - {"eval.duckdb", "dagster"} == {"journal.sqlite"}
    removed(home)
    assert places_of(home.home.root, MARKER) == [], "a purge takes what an earlier removal left"


def test_one_suite_alone_can_go(home: Lab) -> None:
    done = removed(home, suites=("other",))
    assert done.partitions == (Partition("other", "leaving", DAY),)
    assert set(home.sql("SELECT DISTINCT suite, model_version FROM turn_results")) == {
        ("small", "leaving"), ("small", "staying"), ("other", "staying"),
    }  # fmt: skip
    assert "leaving" in names_in(home, "model_versions")
    Puppet.reset()
    assert command("run", "--suite", "small", "--model-version", "leaving", "--eval-date", str(NEXT)).code in {0, 1}
    assert Puppet.asked == [], "the responses of the suite that stays are still in the journal"


def test_a_dry_run_says_what_would_go_and_changes_nothing(home: Lab) -> None:
    before = {path: path.stat().st_mtime_ns for path in home.home.root.rglob("*") if path.is_file()}
    said = command("remove", "--model-version", "leaving", "--purge", "--dry-run")
    assert said.code == 0, said.text
    told = removed(home, dry_run=True)
    assert told.purged is not None
    assert told.purged.responses == 8 * 3, "8 turns in all, each tried three times"
    assert f"would be removed: 3 evaluations, {told.files:,} files" in said.out
    assert "24 responses and 0 batches" in said.out
    after = {path: path.stat().st_mtime_ns for path in home.home.root.rglob("*") if path.is_file()}
    assert {path.suffix for path in before.keys() ^ after.keys()} <= {".lock"}
    changed = {path for path in before.keys() & after.keys() if before[path] != after[path]}
    assert not [path for path in changed if path.suffix not in {".lock", ".db"}]
    assert removed(home) == told


STEPS = (
    ("eval_pipeline.store.record.Record", "remove"),
    ("eval_pipeline.operations.removing", "remove_folder"),
    ("eval_pipeline.operations.removing", "forget_acknowledged"),
    ("eval_pipeline.operations.removing", "compare"),
    ("eval_pipeline.operations.removing", "publish_keys"),
    ("eval_pipeline.operations.removing", "deliver"),
    ("eval_pipeline.operations.purging", "purge_journal"),
    ("eval_pipeline.operations.purging", "purge_judgements"),
    ("eval_pipeline.operations.removing", "end_note"),
)
"""What a removal does one after the other."""


def test_a_removal_that_is_killed_goes_on_where_it_was(home: Lab, tmp_path: Path) -> None:
    """Killed before and after each of its steps, the same call brings it to the same end."""
    kept = shutil.copytree(home.home.root, tmp_path / "kept")
    for place, name in STEPS:
        for done in (False, True):
            shutil.rmtree(home.home.root)
            shutil.copytree(kept, home.home.root)
            with pytest.raises(KeyboardInterrupt), _killed_at(f"{place}.{name}", done=done):
                removed(home)
            removed(home)
            left = {path for path in places_of(home.home.root, MARKER) if not path.startswith("dagster")}
            assert not left, (name, done)
            assert names_in(home, "turn_results") == {"staying"}, (name, done)
            assert names_in(home, "trends") == {"staying"}, (name, done)
            assert not (home.home.root / "removing").exists()


@contextmanager
def _killed_at(place: str, *, done: bool) -> Iterator[None]:
    """Ends the process, as it were, at the first call of a function: before it does anything, or when it has."""
    real = pkgutil.resolve_name(place)

    def killed(*arguments: object, **more: object) -> object:
        if more.get("dry_run"):
            return real(*arguments, **more)
        if done:
            real(*arguments, **more)
        raise KeyboardInterrupt

    with patch(place, killed):
        yield


def test_what_dagster_keeps_goes_with_the_second_call_where_the_first_could_not(home: Lab) -> None:
    home.versions({"name": "staying", "provider": "puppet", "model": "staying"})
    runs = next((home.home.dagster / "history").glob("runs.db"))
    with closing(sqlite3.connect(runs)) as connection:
        assert connection.execute("SELECT count(*) FROM runs WHERE partition = 'leaving'").fetchone() == (3,)
    refused = StoreError("it is in use")
    with patch("eval_pipeline.defs.running.removing._write_anew", side_effect=refused):
        said = command("remove", "--model-version", "leaving", "--purge", "--yes")
    assert (said.code, "it is in use" in said.err) == (2, True), said.text
    assert command("remove", "--model-version", "leaving", "--purge", "--yes").code == 0
    assert b"leaving" not in runs.read_bytes()
    with open_instance(home.home) as instance:
        assert instance.get_dynamic_partitions(DIMENSION) == ["staying"]
    assert command("remove", "--model-version", "leaving", "--purge", "--yes").code == 2, "nothing is left"


def test_nothing_goes_while_a_run_is_at_it(home: Lab) -> None:
    before = home.record_files()
    with (
        partition_lock(home.workspace(), Partition("small", "leaving", NEXT), Silent()),
        pytest.raises(UsageError, match=r"a run is at small · leaving · 2026-03-02; .*nothing has been removed"),
    ):
        removed(home, purge=False)
    record_run(home.workspace(), Partition("small", "leaving", DAY), "another", scope="full", status="running")
    with pytest.raises(UsageError, match="a run is at small · leaving · 2026-03-01"):
        removed(home, purge=False)
    record_run(home.workspace(), Partition("small", "leaving", DAY), "another", status=COMPLETE)
    with (
        partition_lock(home.workspace(), Partition("small", "staying", NEXT), Silent()),
        pytest.raises(UsageError, match="a run is asking models, and the journal cannot be purged beside it"),
    ):
        removed(home)
    assert home.record_files() == before


def test_a_model_version_that_nobody_knows_is_told(home: Lab) -> None:
    said = command("remove", "--model-version", "leavin", "--yes")
    assert (said.code, "nothing is kept of a model version 'leavin'; known: leaving, staying" in said.err) == (2, True)


def test_nothing_goes_unasked(home: Lab) -> None:
    before = home.record_files()
    said = command("remove", "--model-version", "leaving")
    assert (said.code, "--yes goes on without asking" in said.err) == (2, True), said.text
    assert home.record_files() == before
