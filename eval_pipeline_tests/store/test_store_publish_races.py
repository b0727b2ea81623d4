"""Publishing while another process writes partitions of the record: a partition goes in whole or not at all."""

from collections.abc import Callable
from pathlib import Path

import pytest

from eval_pipeline.store.published.publish import publish, publish_full
from eval_pipeline.store.published.snapshot import Snapshot
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import METRICS, RUNS, TURN_RESULTS
from eval_pipeline_tests.store.samples import TRACKS, ask, key_of, put, put_partition

OURS = key_of("alpha")
THEIRS = key_of("delta")
TURNS = "SELECT model_version, count(*) FROM turn_results GROUP BY ALL ORDER BY ALL"
BEING_WRITTEN = ((THEIRS, "was being written while it was published"),)


def counts(out: Path) -> tuple[int, int]:
    """Rows of the partition that the other process writes, in two of its tables."""
    where = f"WHERE model_version = '{THEIRS.model_version}'"
    return tuple(ask(out, f"SELECT count(*) FROM {table} {where}")[0][0] for table in ("turn_results", "metrics"))


pytestmark = pytest.mark.usefixtures("published")


@pytest.mark.parametrize("publishing", [publish, publish_full])
def test_a_partition_that_is_completed_after_its_files_were_listed_is_left_to_its_own_run(
    record: Record, out: Path, publishing: Callable[..., object]
) -> None:
    put_partition(record, THEIRS)
    record.remove(TURN_RESULTS, THEIRS)

    def whole_by_now(key: RecordKey) -> None:
        if key == THEIRS:
            put_partition(record, THEIRS)

    done = publishing(record, out, TRACKS, refuse=whole_by_now)
    assert counts(out) == (0, 0)
    assert done.left_out == BEING_WRITTEN
    assert publish(record, out, TRACKS, [THEIRS], whole_by_now).left_out == ()
    assert counts(out) == (3, 3)


def test_a_partition_that_is_written_again_while_it_is_read_is_left_to_its_own_run(
    record: Record, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_partition(record, THEIRS)
    apply = Snapshot.apply

    def rewriting(*args: object) -> int:
        rows = apply(*args)
        put(record, METRICS, THEIRS, 2, value=[0.5, 0.5])
        return rows

    monkeypatch.setattr(Snapshot, "apply", rewriting)
    done = publish(record, out, TRACKS, refuse=lambda _: None)
    assert counts(out) == (0, 0)
    assert done.left_out == BEING_WRITTEN
    assert ask(out, "SELECT count(*) FROM turn_results")[0][0] > 0


def test_a_partition_to_which_other_runs_add_their_rows_meanwhile_is_published(record: Record, out: Path) -> None:
    put_partition(record, THEIRS)
    others = iter(range(2, 4))

    def run(key: RecordKey) -> None:
        if key == THEIRS and (runs := next(others, 0)):
            put(record, RUNS, THEIRS, runs)

    done = publish(record, out, TRACKS, refuse=run)
    assert done.left_out == ()
    assert counts(out) == (3, 3)
    assert ask(out, f"SELECT count(*) FROM runs WHERE model_version = '{THEIRS.model_version}'") == [(3,)]


def test_what_the_store_has_of_such_a_partition_stays(record: Record, out: Path) -> None:
    put_partition(record, THEIRS)
    publish(record, out, TRACKS)
    put_partition(record, OURS, turns=5)
    put(record, METRICS, THEIRS, 1)

    def another_file(key: RecordKey) -> None:
        if key == THEIRS:
            put(record, TURN_RESULTS, THEIRS, 1)

    assert publish(record, out, TRACKS, refuse=another_file).left_out == BEING_WRITTEN
    assert counts(out) == (3, 3)
    assert dict(ask(out, TURNS))["alpha"] == 5


def test_the_runs_own_partition_is_published_without_asking(record: Record, out: Path) -> None:
    put_partition(record, THEIRS)
    assert publish(record, out, TRACKS, [THEIRS], lambda _: "is never let in").left_out == ()
    assert counts(out) == (3, 3)
