"""Work in a process of its own: whatever becomes of that one, it is a sentence here."""

import signal
from pathlib import Path

import pytest

from eval_pipeline.core.errors import EvalError, InputError, Problem, StoreError, UsageError
from eval_pipeline.core.reading import arms_length
from eval_pipeline.core.reading.arms_length import MEMORY_MB, at_arms_length, why_ended
from eval_pipeline_tests.fakes.foreign_work import (
    chatter,
    count,
    crash,
    doubled,
    end,
    fail,
    hunger,
    reserved_by_threads,
)

RUN = arms_length._run


@pytest.fixture(autouse=True)
def interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here children are what the program starts."""
    monkeypatch.setattr(arms_length, "_run", RUN)


def test_what_it_gives_comes_back(tmp_path: Path) -> None:
    assert at_arms_length(doubled, ["ab"], [tmp_path]) == "abab"
    assert at_arms_length(chatter, ["ü\n"], [tmp_path]) == "ü\n"


def test_a_crash_names_the_file_that_was_opened_last(tmp_path: Path) -> None:
    file = tmp_path / "a folder" / "file.xml"
    file.parent.mkdir()
    file.write_text("<x/>")
    with pytest.raises(InputError, match=r"a folder/file.xml: ends the process that reads it \(SIGSEGV\)$"):
        at_arms_length(crash, [str(file)], [tmp_path])
    with pytest.raises(InputError, match=rf"^{tmp_path}: ends the process that reads it \(with 7\)$"):
        at_arms_length(end, [7], [tmp_path])


def test_hunger_is_told_with_what_it_may_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY_MB, "500")
    told = r"takes more than 500 MB of memory to read \(EVAL_READING_MEMORY_MB sets how much it may\)$"
    for work, argument in ((hunger, 1 << 30), (fail, "memory")):
        with pytest.raises(InputError, match=told):
            at_arms_length(work, [argument], [tmp_path])
    assert at_arms_length(hunger, [1 << 20], [tmp_path]) == 1 << 20


def test_threads_reserve_little_of_the_memory(tmp_path: Path) -> None:
    """DuckDB, which starts a few threads as it opens, crashes where their heaps have used up the limit."""
    taken = at_arms_length(reserved_by_threads, [], [tmp_path])
    assert isinstance(taken, int)
    assert taken < 256 << 20


def test_errors_come_across_as_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(InputError) as found:
        at_arms_length(fail, ["input"], [tmp_path])
    assert found.value.problems == (Problem("a.yaml", 3, "x.y", "expected z"), Problem("b.yaml", None, "", "is empty"))
    for kind, error, text in (
        ("usage", UsageError, "no such thing"),
        ("store", StoreError, "no room"),
        ("other", EvalError, "something"),
        ("fault", InputError, f"{tmp_path}: cannot be read: ZeroDivisionError: division by zero"),
    ):
        with pytest.raises(EvalError) as raised:
            at_arms_length(fail, [kind], [tmp_path])
        assert (type(raised.value), str(raised.value)) == (error, text)


def test_whoever_needs_too_long_is_told_so() -> None:
    assert why_ended(-signal.SIGXCPU) == "takes more than 900 seconds of CPU time to read"
    assert why_ended(0) is None


@pytest.mark.always
def test_who_is_interrupted_has_what_was_done_if_the_work_ends_early(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []

    def interrupt(done: int, total: int) -> None:
        heard.append((done, total))
        if done == 3:
            raise KeyboardInterrupt

    assert at_arms_length(count, [True], [tmp_path], interrupt) == "ended"
    assert heard == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(KeyboardInterrupt):
        at_arms_length(count, [False], [tmp_path], interrupt)
