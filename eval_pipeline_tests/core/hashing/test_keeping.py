"""Kept values: damage is found, the folder stays within its limit, and what was used longest ago goes first."""

import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.ids import json_text
from eval_pipeline.workspace.homes.kept import keep, kept_bytes, look_up, trim

HOUR = 3600.0


@given(text=st.text(max_size=60).map(json_text), at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_or_a_torn_file_is_never_believed(
    tmp_path_factory: pytest.TempPathFactory, text: str, at: int, bit: int
) -> None:
    place = tmp_path_factory.mktemp("kept") / "one.json"
    keep(place, text)
    assert look_up(place) == text
    whole = place.read_bytes()
    broken = bytearray(whole)
    broken[at % len(whole)] ^= 1 << bit
    place.write_bytes(broken)
    assert look_up(place) is None
    place.write_bytes(whole[: at % len(whole)])
    assert look_up(place) is None
    keep(place, text)
    assert look_up(place) == text


def test_nothing_there_is_none_and_a_place_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    assert look_up(tmp_path / "folder" / "none.json") is None
    (tmp_path / "folder").write_text("a file")
    keep(tmp_path / "folder" / "one.json", "text")
    assert look_up(tmp_path / "folder" / "one.json") is None


def test_it_is_private(tmp_path: Path) -> None:
    keep(tmp_path / "one.json", "text")
    assert stat.S_IMODE((tmp_path / "one.json").stat().st_mode) == 0o600


def aged(folder: Path, name: str, hours: float, size: int = 5000) -> Path:
    path = folder / name
    keep(path, "x" * size)
    os.utime(path, (time.time() - hours * HOUR,) * 2)
    return path


def test_beyond_the_limit_what_was_used_longest_ago_goes(tmp_path: Path) -> None:
    """Files of 5,000 characters take two blocks each; a fifth more than the limit asks for goes."""
    old, used, young = (aged(tmp_path, name, hours) for name, hours in (("a", 100), ("b", 90), ("c", 1)))
    assert kept_bytes(tmp_path) == 3 * 8192
    assert trim(tmp_path, 3 * 8192) == 0
    assert look_up(used)
    assert trim(tmp_path, 3 * 8192 - 1) == 1
    assert (old.exists(), used.exists(), young.exists()) == (False, True, True)
    assert kept_bytes(tmp_path) == 2 * 8192
    assert trim(tmp_path, 0) == 2


def test_what_a_killed_process_left_goes_after_an_hour(tmp_path: Path) -> None:
    aged(tmp_path, ".made-old", 2), aged(tmp_path, ".made-new", 0), aged(tmp_path, "b", 100)
    assert trim(tmp_path, 1 << 30) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".made-new", "b"]
