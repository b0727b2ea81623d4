"""A seccomp filter for the process of a snippet: what pandas does not need and an attack does is refused.

Runs inside the jail: standard library only. A denylist in classic BPF (linux/filter.h, linux/seccomp.h), built here
because libseccomp is not on every machine.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Sequence

from .syscalls import FIRST_NEW, MACHINES, NEW_ALLOWED

Step = tuple[int, int, int, int]
"""Of classic BPF: operation, steps to skip if true, if false, operand."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_REFUSE, _MISSING = _ERRNO | 1, _ERRNO | 38  # EPERM, ENOSYS
_CLONE_THREAD = 0x00010000
_PR_SET_PDEATHSIG = 1
# Signals sent by way of a file: F_SETOWN, F_SETSIG, F_SETOWN_EX; and F_SETLEASE, which holds up who opens it.
_FCNTL_REFUSED = (8, 10, 15, 1024)
_IOCTL_REFUSED = (0x5412, 0x541C, 0x8901)  # TIOCSTI and TIOCLINUX type for the user, FIOSETOWN is F_SETOWN
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2


def supported() -> bool:
    """Whether the filter knows this machine's system calls."""
    return platform.machine() in MACHINES and os.uname().sysname == "Linux"


def program(pid: int, machine: str) -> bytes:
    """The filter as BPF for a process with that id on that kind of machine.

    Refused with EPERM: the system calls of the table, `clone` of anything but a thread, signals to and limits of other
    processes, and a few ways to the same by `prctl`, `fcntl` and `ioctl`. What is newer than the table does not exist
    (ENOSYS), `clone3` neither, since it hides its flags from a filter: the C library falls back to `clone`.

    Raises:
        KeyError: for a machine that is not supported.
    """
    known = MACHINES[machine]
    code: list[Step] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, known.audit), (_RETURN, 0, 0, _KILL)]
    code.append((_LOAD, 0, 0, _NUMBER))
    code += _when(known.clone, [_load(0), (_ANY_BIT, 0, 1, _CLONE_THREAD), (_RETURN, 0, 0, _ALLOW)], _REFUSE)
    for call in (known.tgkill, known.prlimit64):
        code += _when(call, [_load(0), *_verdicts([pid, 0], _ALLOW)], _REFUSE)
    code += _when(known.prctl, [_load(0), *_verdicts([_PR_SET_PDEATHSIG], _REFUSE)], _ALLOW)
    code += _when(known.fcntl, [_load(1), *_verdicts(_FCNTL_REFUSED, _REFUSE)], _ALLOW)
    code += _when(known.ioctl, [_load(1), *_verdicts(_IOCTL_REFUSED, _REFUSE)], _ALLOW)
    code += _verdicts(sorted(known.refused.values()), _REFUSE)
    code += _verdicts(sorted(NEW_ALLOWED.values()), _ALLOW)
    # The numbers of x32, a second way to each call on x86_64, are above too.
    code += [(_AT_LEAST, 0, 1, FIRST_NEW), (_RETURN, 0, 0, _MISSING), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("<HBBI", *step) for step in code)


def _load(argument: int) -> Step:
    """Loads the low half of an argument of the call: all of it that these calls look at."""
    return (_LOAD, 0, 0, 16 + 8 * argument)


def _verdicts(values: Sequence[int], verdict: int) -> list[Step]:
    """A verdict for each of some values of what is loaded."""
    return [step for value in values for step in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, verdict))]


def _when(call: int, then: Sequence[Step], otherwise: int) -> list[Step]:
    """Steps for one system call that always end in a verdict; others skip them."""
    steps = [*then, (_RETURN, 0, 0, otherwise)]
    return [(_EQUAL, 0, len(steps), call), *steps]


def install() -> None:
    """Puts the filter on this process, for good. Raises OSError where the kernel refuses it."""
    code = program(os.getpid(), platform.machine())
    libc = ctypes.CDLL(None, use_errno=True)
    text = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(text))
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0):
        raise OSError(ctypes.get_errno(), "the seccomp filter was refused")
