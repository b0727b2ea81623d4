"""Many reviews, made twice on two branches by processes that are killed at random, and merged: none is lost."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from eval_pipeline.suites.reviews.files import add_review, read_reviews
from eval_pipeline_tests.suites.reviews.test_review_files import git, review

_ID = 32


def say(folder: Path, branch: str, numbers: list[int], told: int) -> None:
    """Adds reviews and tells the id of each that is on the disk."""
    for number in numbers:
        one = review(number, who=("ann", branch)[number % 2], note=f"{branch} {number} " + "x" * (number % 7 * 300))
        add_review(folder, one)
        os.write(told, one.id.encode())


def review_until_killed(folder: Path, branch: str, numbers: list[int], some: int, seconds: float) -> list[str]:
    """Ids that a process had told of before it was killed, some time after it had told of ``some``, or had done all.

    The time runs from its own progress: on a busy machine a process might otherwise be killed before it does anything.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            say(folder, branch, numbers, writer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read(some * _ID)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        said += pipe.read()
    ids = said.decode()
    return [ids[start : start + _ID] for start in range(0, len(ids), _ID)]


def campaign(folder: Path, count: int, seed: int) -> tuple[int, int]:
    """Reviews told of on both branches, and kills; fails where one of them is not there after the merge."""
    chance = random.Random(seed)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    told: list[str] = []
    kills = 0
    for branch in ("left", "right"):
        git(folder, "checkout", "-q", "-b", branch, "main")
        own: list[str] = []
        while len(own) < count:
            left = list(range(len(own), count))
            own += review_until_killed(folder, branch, left, chance.randint(0, 15), chance.uniform(0.0, 0.005))
            kills += 1
        told += own
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", branch)
    git(folder, "merge", "-q", "left", "-m", "both")
    # What a kill cut off is told of once; the next one to write has set it aside, but for a last kill.
    found = read_reviews(folder)
    there = {one.id for one in found.reviews}
    assert set(told) <= there
    assert len(there) <= len(told) + kills  # on the disk, and killed before it was told
    assert all("cut off" in problem.message for problem in found.problems)
    return len(told), kills


def test_none_of_80_reviews_made_twice_is_lost(tmp_path: Path) -> None:
    told, kills = campaign(tmp_path, 80, seed=1)
    assert told >= 160
    assert kills > 5, kills


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 22))
def test_none_of_300_is_lost_whenever_the_kills_come(tmp_path: Path, seed: int) -> None:
    campaign(tmp_path, 300, seed)


def test_two_that_review_at_once_do_not_mix_their_lines(tmp_path: Path) -> None:
    """The same person in two windows: one file, two processes."""
    children = []
    for branch in ("one", "two"):
        child = os.fork()
        if not child:
            try:
                for number in range(100):
                    add_review(tmp_path, review(number, note=branch * (number % 50)))
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    found = read_reviews(tmp_path)
    assert len(found.reviews) == 200
    assert found.problems == ()
