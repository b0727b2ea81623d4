"""Judgements on disk: how long they live, and files that cannot be used."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from eval_pipeline.core.model import Usage
from eval_pipeline.judge.cache import JudgementCache
from eval_pipeline.judge.judgement import Judgement

SAID = Judgement(0.5, "partly", "A filter is “missing”.", model="anthropic/claude", prompt_version="sql-1")
HOUR = 3600.0


class Clock:
    """A clock that stands still unless it is told to go on."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_judgement_is_found_by_another_run_until_it_is_a_day_old(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "new folder" / "judge.sqlite"
    first = JudgementCache(file, clock=clock)
    first.put("key", SAID)
    first.close()
    for hours, found in ((23.9, True), (24.1, False)):
        clock.now = 1_700_000_000.0 + hours * HOUR
        later = JudgementCache(file, clock=clock)
        assert (later.get("key") is not None) == found
        later.close()
    rows = sqlite3.connect(file).execute("SELECT count(*) FROM judgements").fetchone()
    assert rows == (0,)  # what is too old is dropped


def test_a_run_goes_on_using_what_it_has_seen() -> None:
    clock = Clock()
    cache = JudgementCache(None, clock=clock)
    cache.put("key", SAID)
    clock.now += 100 * HOUR
    assert cache.get("key") is not None
    assert cache.get("other") is None


def test_the_life_of_a_judgement_can_be_set(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "judge.sqlite"
    JudgementCache(file, clock=clock).put("key", SAID)
    clock.now += 2 * HOUR
    assert JudgementCache(file, life_s=HOUR, clock=clock).get("key") is None


def test_what_is_kept_is_what_was_said_without_what_it_cost(tmp_path: Path) -> None:
    paid = Judgement(
        *(SAID.value, SAID.choice, SAID.reason),
        model=SAID.model,
        prompt_version=SAID.prompt_version,
        usage=Usage(100, 20),
        seconds=2.5,
    )
    cache = JudgementCache(tmp_path / "judge.sqlite")
    cache.put("key", paid)
    for found in (cache.get("key"), JudgementCache(tmp_path / "judge.sqlite").get("key")):
        assert found == Judgement(
            0.5, "partly", "A filter is “missing”.", model="anthropic/claude", prompt_version="sql-1", cached=True
        )


def test_two_runs_may_have_the_file_open(tmp_path: Path) -> None:
    one, other = JudgementCache(tmp_path / "judge.sqlite"), JudgementCache(tmp_path / "judge.sqlite")
    one.put("a", SAID)
    other.put("b", SAID)
    assert one.get("b") is not None
    assert other.get("a") is not None


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_damaged_file_is_said_once_and_the_memory_remains(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "judge.sqlite"
    file.write_bytes(content)
    cache = JudgementCache(file)
    cache.put("key", SAID)
    assert cache.get("key") is not None
    assert cache.get("other") is None
    cache.close()
    (record,) = caplog.records
    assert str(file) in record.message
    assert file.read_bytes() == content


def test_a_row_that_says_nothing_is_asked_again(tmp_path: Path) -> None:
    file = tmp_path / "judge.sqlite"
    JudgementCache(file).put("key", SAID)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE judgements SET body = '[1]'")
    assert JudgementCache(file).get("key") is None


def test_a_folder_that_cannot_be_made_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = JudgementCache(tmp_path / "file" / "judge.sqlite")
    cache.put("key", SAID)
    assert cache.get("key") is not None


def test_a_judgement_that_was_changed_on_the_disk_is_asked_for_again(tmp_path: Path) -> None:
    file = tmp_path / "judge.sqlite"
    first = JudgementCache(file)
    first.put("key", SAID)
    first.put("other", SAID)
    first.close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE judgements SET body = replace(body, '0.5', '1.0') WHERE key = 'key'")
        connection.execute("UPDATE judgements SET key = 'taken' WHERE key = 'other'")
        connection.commit()
    later = JudgementCache(file)
    assert later.get("key") is None
    assert later.get("taken") is None, "it is the answer to another question"
    later.close()
