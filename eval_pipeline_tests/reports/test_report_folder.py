"""Folders that appear whole or not at all."""

import os
from pathlib import Path

import pytest

from eval_pipeline.core.errors import StoreError
from eval_pipeline.reports.folder import MADE_FROM, is_current, make_folder

INPUTS = {"turns": "a"}


def fill(folder: Path, text: str = "one") -> None:
    (folder / "file.txt").write_text(text)
    (folder / "traces").mkdir()
    (folder / "traces" / "a.json").write_text(text)


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.parent.iterdir()} - {".lock"}


def test_the_folder_is_made_and_left_alone_while_current(tmp_path: Path) -> None:
    folder = tmp_path / "suite" / "model" / "2026-01-05"
    assert make_folder(folder, INPUTS, fill)
    assert not make_folder(folder, INPUTS, lambda aside: pytest.fail("written again"))
    assert (folder / "traces" / "a.json").read_text() == "one"
    assert entries(folder) == {"2026-01-05"}


def test_other_inputs_replace_every_file(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    make_folder(folder, INPUTS, fill)
    assert make_folder(folder, {"turns": "b"}, lambda aside: (aside / "other.txt").write_text("two") and None)
    assert {path.name for path in folder.iterdir()} == {MADE_FROM, "other.txt"}
    assert entries(folder) == {"day"}


@pytest.mark.parametrize("harm", ["cut", "removed", "added", "made_from"])
def test_a_folder_that_is_not_as_written_is_made_again(tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "day"
    make_folder(folder, INPUTS, fill)
    trace = folder / "traces" / "a.json"
    match harm:
        case "cut":
            os.truncate(trace, 1)
        case "removed":
            trace.unlink()
        case "added":
            (folder / "traces" / "b.json").write_text("")
        case "made_from":
            (folder / MADE_FROM).write_text("{")
    assert not is_current(folder, INPUTS)
    assert make_folder(folder, INPUTS, fill)
    assert is_current(folder, INPUTS)


def test_files_of_editors_do_not_matter(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    make_folder(folder, INPUTS, fill)
    (folder / "~$report.xlsx").write_text("open in Excel")
    (folder / ".~lock.report.xlsx#").write_text("open in LibreOffice")
    assert is_current(folder, INPUTS)


def test_a_failure_leaves_the_old_folder_and_nothing_aside(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    make_folder(folder, INPUTS, fill)

    def fail(aside: Path) -> None:
        fill(aside, "two")
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        make_folder(folder, {"turns": "b"}, fail)
    assert (folder / "file.txt").read_text() == "one"
    assert is_current(folder, INPUTS)
    assert entries(folder) == {"day"}


def test_a_full_disk_is_said_in_one_sentence(tmp_path: Path) -> None:
    def full(aside: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="no room on the disk"):
        make_folder(tmp_path / "day", INPUTS, full)
    assert not (tmp_path / "day").exists()


def test_what_killed_processes_left_is_cleared_away(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    for name in (".new-day", ".old-day"):
        (tmp_path / name / "traces").mkdir(parents=True)
        (tmp_path / name / "half.txt").write_text("half")
    make_folder(folder, INPUTS, fill)
    assert entries(folder) == {"day"}
    assert not (folder / "half.txt").exists()


def test_another_dates_folder_being_built_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / ".new-other").mkdir()
    make_folder(tmp_path / "day", INPUTS, fill)
    assert (tmp_path / ".new-other").is_dir()


def test_killed_between_the_two_renames_the_next_one_makes_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    make_folder(folder, INPUTS, fill)
    folder.rename(tmp_path / ".old-day")
    assert make_folder(folder, INPUTS, fill)
    assert entries(folder) == {"day"}
