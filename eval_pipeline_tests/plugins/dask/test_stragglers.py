"""Which task starts next, and which copy counts."""

from eval_pipeline_plugins.dask.stragglers import STRAGGLES, TaskLedger


def test_what_waits_comes_first_and_each_once() -> None:
    ledger = TaskLedger(3)
    assert [ledger.next(0.0) for _ in range(4)] == [0, 1, 2, None]


def test_a_straggler_is_started_once_more() -> None:
    ledger = TaskLedger(5)
    for _ in range(5):
        ledger.next(0.0)
    for task, took in ((0, 1.0), (1, 2.0), (2, 9.0)):
        assert ledger.ended(task, took)
    bound = STRAGGLES * 2.0  # the median of 1, 2 and 9
    assert ledger.next(bound) is None
    assert ledger.next(bound + 0.1) == 3
    assert ledger.next(bound + 0.1) == 4
    assert ledger.next(100.0) is None  # both have two copies by now


def test_nothing_straggles_before_the_median_is_known() -> None:
    ledger = TaskLedger(3)
    for _ in range(3):
        ledger.next(0.0)
    ledger.ended(0, 1.0)
    ledger.ended(1, 1.0)
    assert ledger.next(1000.0) is None


def test_the_first_copy_wins() -> None:
    ledger = TaskLedger(1)
    ledger.next(0.0)
    assert ledger.ended(0, 1.0)
    assert not ledger.ended(0, 2.0)
    assert ledger.finished
    assert ledger.took == [1.0]


def test_done_tasks_are_not_started_again() -> None:
    ledger = TaskLedger(4)
    for _ in range(4):
        ledger.next(0.0)
    for task in range(4):
        ledger.ended(task, 1.0)
    assert ledger.next(1000.0) is None
