"""Emptying scratch folders, whatever a snippet left in them, and telling when they are too full."""

import os
import sys
from pathlib import Path

from eval_pipeline.sandbox.inside.scratch import renew, too_full, wipe


def test_folders_deeper_than_any_path_or_recursion_are_wiped(tmp_path: Path) -> None:
    scratch, here = tmp_path / "scratch", os.getcwd()
    scratch.mkdir()
    os.chdir(scratch)
    try:
        for _ in range(3 * sys.getrecursionlimit()):
            os.mkdir("deep")
            os.chdir("deep")
        Path("file").write_text("x")
    finally:
        os.chdir(here)
    assert wipe(str(scratch))
    assert list(scratch.iterdir()) == []


def test_folders_without_permissions_are_wiped(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    (scratch / "a/b").mkdir(parents=True)
    (scratch / "a/b/file").write_text("x")
    for path in (scratch / "a/b", scratch / "a", scratch):
        path.chmod(0)
    assert wipe(str(scratch))
    assert list(scratch.iterdir()) == []


def test_what_links_lead_to_is_not_touched(tmp_path: Path) -> None:
    scratch, outside = tmp_path / "scratch", tmp_path / "outside"
    for folder in (scratch, outside):
        folder.mkdir()
    (outside / "kept").write_text("x" * 50_000)
    (scratch / "folder").symlink_to(outside)
    (scratch / "file").symlink_to(outside / "kept")
    assert not too_full(str(scratch), 20_000, 10)
    assert wipe(str(scratch))
    assert (outside / "kept").read_text() == "x" * 50_000


def test_a_folder_is_too_full_by_bytes_or_by_files(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("a", "b"):
        (tmp_path / "inner" / name).write_bytes(b"x" * 10_000)
    assert not too_full(str(tmp_path), 100_000, 3)
    assert too_full(str(tmp_path), 100_000, 2)
    assert too_full(str(tmp_path), 15_000, 3)


def test_what_is_not_there_cannot_be_wiped(tmp_path: Path) -> None:
    assert not wipe(str(tmp_path / "nothing"))


def test_what_takes_long_to_remove_is_moved_beside_the_folder(tmp_path: Path) -> None:
    scratch, here = tmp_path / "scratch", os.getcwd()
    scratch.mkdir()
    try:
        (scratch / "inner").mkdir()
        (scratch / "inner/file").write_text("x")
        scratch.chmod(0)
        assert renew(str(scratch))
        assert Path.cwd() == scratch
    finally:
        os.chdir(here)
    assert [*scratch.iterdir()] == []
    (aside,) = (path for path in tmp_path.iterdir() if path != scratch)
    assert (aside / "inner/file").read_text() == "x"


def test_a_few_files_are_removed_at_once(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for number in range(100):
        (scratch / str(number)).touch()
    assert renew(str(scratch))
    assert [*tmp_path.iterdir()] == [scratch]
    assert [*scratch.iterdir()] == []
    assert not renew(str(tmp_path / "nothing"))
