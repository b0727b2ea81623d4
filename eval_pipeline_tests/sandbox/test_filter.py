"""The system-call filter, run as BPF for each kind of machine: what it refuses, by numbers of the kernel's headers."""

import struct

import pytest

from eval_pipeline.sandbox.inside import seccomp
from eval_pipeline_tests.goldens import golden

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
