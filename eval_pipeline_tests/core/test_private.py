"""Who may read what a run writes."""

import grp
import os
import stat
from pathlib import Path

import pytest

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.system.private import SHARED_GROUP, make_private
from eval_pipeline_tests.support import Lab

OTHERS = 0o077
GROUP = grp.getgrall()[-1].gr_name


@pytest.fixture(autouse=True)
def _umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_nothing_that_a_run_writes_can_be_read_by_others_whatever_the_umask(lab: Lab) -> None:
    lab.suite()
    lab.versions({"name": "sim", "provider": "simulated", "options": {"rates": {}}})
    (lab.home.root.parent / "other").mkdir()
    assert mode(lab.home.root.parent / "other") == 0o777, "the umask of this process lets everybody in"
    assert lab.cli("run", "--eval-date", "2026-01-05").code == 0
    made = [lab.home.root, *lab.home.root.rglob("*")]
    assert {path.name for path in made} >= {"journal.sqlite", "eval.duckdb", "turns.csv", ".gitignore"}
    open_to_others = [path for path in made if not path.is_symlink() and mode(path) & OTHERS]
    assert open_to_others == []
    assert mode(lab.home.root) == 0o700
    assert (lab.home.root / ".gitignore").read_text().endswith("\n*\n")


def test_a_team_shares_a_home_through_a_group(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.suite()
    lab.versions({"name": "sim", "provider": "simulated", "options": {"rates": {}}})
    monkeypatch.setenv(SHARED_GROUP, GROUP)
    assert lab.cli("run", "--eval-date", "2026-01-05", "--no-report").code == 0
    made = [lab.home.root, lab.home.journal, lab.home.store, *lab.home.record.rglob("*")]
    made += [*lab.home.commands.rglob("*"), *(lab.home.root / "locks").rglob("*")]
    assert {path.stat().st_gid for path in made} == {grp.getgrnam(GROUP).gr_gid}
    assert [path for path in made if path.is_file() and mode(path) != 0o660] == []
    assert {mode(path) for path in made if path.is_dir()} == {0o2770}


def test_an_older_home_is_closed_and_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    older, working, empty = (tmp_path / name for name in ("older", "working", "empty"))
    for folder in (older, working, empty):
        folder.mkdir(mode=0o755)
    (older / "journal.sqlite").touch()
    (working / "letter.txt").touch()
    for folder in (older, working, empty):
        make_private(folder)
    assert [mode(folder) for folder in (older, working, empty)] == [0o700, 0o755, 0o700]
    assert not (working / ".gitignore").exists()


def test_an_unknown_group_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARED_GROUP, "nobody-knows-it")
    with pytest.raises(
        UsageError, match="EVAL_SHARED_GROUP is 'nobody-knows-it', which is not a group on this machine"
    ):
        make_private(tmp_path)


def test_an_existing_home_is_shared_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    make_private(home)
    (home / "record" / "a").mkdir(parents=True)
    (home / "record" / "a" / "part.parquet").touch()
    (home / "link").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv(SHARED_GROUP, GROUP)
    make_private(home)
    assert [mode(home / name) for name in ("", "record", "record/a")] == [0o2770] * 3
    assert mode(home / "record" / "a" / "part.parquet") == 0o660
    assert (home / "record" / "a").stat().st_gid == grp.getgrnam(GROUP).gr_gid
    monkeypatch.delenv(SHARED_GROUP)
    make_private(home)
    assert mode(home / "record" / "a" / "part.parquet") == 0o600


def test_a_project_with_folders_of_such_names_is_no_home(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for name in ("suites", "dagster", "locks"):
        (project / name).mkdir(parents=True)
    before = mode(project)
    make_private(project)
    assert mode(project) == before
    assert not (project / ".gitignore").exists()
