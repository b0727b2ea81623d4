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


def test_a_folder_is_left_alone_while_current_and_replaced_for_other_inputs(tmp_path: Path) -> None:
    folder = tmp_path / "suite" / "model" / "2026-01-05"
    assert make_folder(folder, INPUTS, fill)
    for opened in ("~$report.xlsx", ".~lock.report.xlsx#"):
        (folder / opened).write_text("of an editor")
    assert not make_folder(folder, INPUTS, lambda aside: pytest.fail("written again"))
    assert (folder / "traces" / "a.json").read_text() == "one"
    assert make_folder(folder, {"turns": "b"}, lambda aside: (aside / "other.txt").write_text("two") and None)
    assert {path.name for path in folder.iterdir()} == {MADE_FROM, "other.txt"}
    assert entries(folder) == {"2026-01-05"}


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


def test_a_failure_or_a_full_disk_leaves_the_old_folder_and_nothing_aside(tmp_path: Path) -> None:
    def full(aside: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="no room on the disk"):
        make_folder(tmp_path / "day", INPUTS, full)
    assert not (tmp_path / "day").exists()
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


def test_what_killed_processes_left_is_cleared_away_but_not_what_others_build(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    for name in (".new-day", ".old-day", ".new-other"):
        (tmp_path / name / "traces").mkdir(parents=True)
        (tmp_path / name / "half.txt").write_text("half")
    make_folder(folder, INPUTS, fill)
    assert entries(folder) == {"day", ".new-other"}
    assert not (folder / "half.txt").exists()
    folder.rename(tmp_path / ".old-day")  # killed between the two renames
    assert make_folder(folder, INPUTS, fill)
    assert entries(folder) == {"day", ".new-other"}
