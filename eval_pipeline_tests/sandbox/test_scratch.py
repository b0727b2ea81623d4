"""What is inside the jail: scratch folders that are emptied whatever is in them, and the filter of system calls."""

import os
import struct
import sys
from pathlib import Path

import pytest

from eval_pipeline.sandbox.inside import seccomp
from eval_pipeline.sandbox.inside.scratch import renew, too_full, wipe
from eval_pipeline_tests.goldens import golden


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


GOLDEN = golden("sandbox_filter.yaml")
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED, KILLED, REFUSED, MISSING = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
VERDICTS = {"allowed": ALLOWED, "refused": REFUSED, "missing": MISSING}
PID = 77


def verdict(machine: str, number: int, arguments: tuple[int, ...] = (), *, audit: int | None = None) -> int:
    """What the filter says of a system call: the few operations of classic BPF that it uses."""
    code = seccomp.program(PID, machine)
    steps = [struct.unpack_from("<HBBI", code, at) for at in range(0, len(code), 8)]
    padded = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, AUDIT[machine] if audit is None else audit, 0, *padded)
    place = loaded = 0
    while True:
        operation, if_true, if_false, operand = steps[place]
        place += 1
        match operation:
            case 0x06:
                return operand
            case 0x20:
                (loaded,) = struct.unpack_from("<I", data, operand)
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: loaded == operand, 0x35: loaded >= operand, 0x45: bool(loaded & operand)}[operation]
                place += if_true if holds else if_false
            case _:
                raise AssertionError(f"operation {operation:#x}")


@pytest.mark.parametrize("machine", AUDIT)
def test_each_system_call_of_the_table_has_its_verdict(machine: str) -> None:
    found, expected = {}, {}
    for entry in GOLDEN["calls"]:
        number = entry.get(machine)
        if number is not None:
            arguments = tuple(PID if argument == "own" else argument for argument in entry.get("arguments", ()))
            key = (entry["name"], arguments)
            found[key], expected[key] = verdict(machine, number, arguments), VERDICTS[entry["expected"]]
    assert len(found) > 60
    assert found == expected


@pytest.mark.parametrize("machine", AUDIT)
def test_calls_of_another_machine_end_the_process(machine: str) -> None:
    assert verdict(machine, 0, audit=0x40000003) == KILLED


@pytest.mark.parametrize("machine", AUDIT)
def test_calls_newer_than_the_table_do_not_exist(machine: str) -> None:
    assert {verdict(machine, number) for number in range(452, 600)} == {MISSING}
    assert verdict(machine, 0x40000000 + 41) == MISSING


def test_an_unknown_machine_is_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "sparc64")
    assert not seccomp.supported()
