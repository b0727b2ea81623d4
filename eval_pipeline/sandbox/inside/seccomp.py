"""A seccomp filter for a snippet's process, which refuses system calls that attacks need and pandas does not.

It runs inside the jail and uses only the standard library. It is a denylist in classic BPF (linux/filter.h,
linux/seccomp.h), built here because libseccomp is not available on every machine.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Sequence
from functools import lru_cache

from .syscalls import ACTING, FIRST_NEW, HOSTING, MACHINES, NEW_ALLOWED, TALKING

Step = tuple[int, int, int, int]
"""An instruction of classic BPF: operation, steps to skip if true, steps to skip if false, operand."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_REFUSE, _MISSING = _ERRNO | 1, _ERRNO | 38  # EPERM, ENOSYS
_CLONE_THREAD = 0x00010000
_CLONE_NEW = 0x7E020000  # every new namespace but time, for which `clone` has no flag
_PR_SET_PDEATHSIG = 1
_AF_UNIX, _AF_INET, _AF_INET6, _PAGE = 1, 2, 10, 4096
# Signals sent by way of a file: F_SETOWN, F_SETSIG, F_SETOWN_EX; and F_SETLEASE, which delays others that open it.
_FCNTL_REFUSED = (8, 10, 15, 1024)
_IOCTL_REFUSED = (0x5412, 0x541C, 0x8901)  # TIOCSTI and TIOCLINUX type for the user, FIOSETOWN is F_SETOWN
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2


def supported() -> bool:
    """Returns whether the filter knows the system calls of this machine."""
    return platform.machine() in MACHINES and os.uname().sysname == "Linux"


@lru_cache(maxsize=2)
def program(pid: int, machine: str, acts: bool = False, hosts: bool = False, talks: bool = False) -> bytes:
    """Returns the filter as BPF, for a process with that id on that kind of machine.

    It refuses with EPERM the system calls in the table, `clone` of anything but a thread, signals to other processes
    and changes of their limits, and some equivalents by `prctl`, `fcntl` and `ioctl`. Calls newer than the table are
    treated as missing (ENOSYS). So is `clone3`, because a filter cannot see its flags; the C library then uses `clone`.
    A process that `acts` may start others and signal them, but not in new namespaces: it has one of its own for them.
    One that `hosts` a server of databases may open Unix sockets and one page of memory that processes share besides.
    One that `talks` may open Unix sockets and those of TCP and UDP, in a network of its own, and have what it starts
    end with itself: the first process among them, with which all end, is not its own.

    Raises:
        KeyError: the machine is not supported.
    """
    known = MACHINES[machine]
    code: list[Step] = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, known.audit), (_RETURN, 0, 0, _KILL)]
    code.append((_LOAD, 0, 0, _NUMBER))
    refused = known.refused
    if acts:
        refused = {name: number for name, number in refused.items() if name not in ACTING}
        code += _when(known.clone, [_load(0), (_ANY_BIT, 0, 1, _CLONE_NEW), (_RETURN, 0, 0, _REFUSE)], _ALLOW)
        code += _when(known.prlimit64, [_load(0), *_verdicts([0], _ALLOW)], _REFUSE)
    else:
        code += _when(known.clone, [_load(0), (_ANY_BIT, 0, 1, _CLONE_THREAD), (_RETURN, 0, 0, _ALLOW)], _REFUSE)
        for call in (known.tgkill, known.prlimit64):
            code += _when(call, [_load(0), *_verdicts([pid, 0], _ALLOW)], _REFUSE)
    if hosts or talks:
        families = [_AF_UNIX, _AF_INET, _AF_INET6] if talks else [_AF_UNIX]
        code += _when(refused["socket"], [_load(0), *_verdicts(families, _ALLOW)], _REFUSE)
    if hosts:
        small = [_load(1, high=True), (_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _REFUSE)]
        small += [_load(1), (_AT_LEAST, 1, 0, _PAGE + 1), (_RETURN, 0, 0, _ALLOW)]
        code += _when(refused["shmget"], small, _REFUSE)
        refused = {name: number for name, number in refused.items() if name not in HOSTING}
    else:
        refused = {name: number for name, number in refused.items() if not (talks and name in TALKING)}
        if not talks:
            code += _when(known.prctl, [_load(0), *_verdicts([_PR_SET_PDEATHSIG], _REFUSE)], _ALLOW)
    code += _when(known.fcntl, [_load(1), *_verdicts(_FCNTL_REFUSED, _REFUSE)], _ALLOW)
    code += _when(known.ioctl, [_load(1), *_verdicts(_IOCTL_REFUSED, _REFUSE)], _ALLOW)
    code += _verdicts(sorted(refused.values()), _REFUSE)
    code += _verdicts(sorted(NEW_ALLOWED.values()), _ALLOW)
    # The numbers of x32, which are another way to each call on x86_64, are also higher.
    code += [(_AT_LEAST, 0, 1, FIRST_NEW), (_RETURN, 0, 0, _MISSING), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("<HBBI", *step) for step in code)


def _load(argument: int, *, high: bool = False) -> Step:
    """Loads the low half of a call's argument, which is all that most of these calls use, or the high one."""
    return (_LOAD, 0, 0, 16 + 8 * argument + 4 * high)


def _verdicts(values: Sequence[int], verdict: int) -> list[Step]:
    """Returns a verdict for each of some loaded values."""
    return [step for value in values for step in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, verdict))]


def _when(call: int, then: Sequence[Step], otherwise: int) -> list[Step]:
    """Returns steps for one system call that always end in a verdict; other calls skip them."""
    steps = [*then, (_RETURN, 0, 0, otherwise)]
    return [(_EQUAL, 0, len(steps), call), *steps]


def install(*, acts: bool = False, hosts: bool = False, talks: bool = False) -> None:
    """Installs the filter in this process permanently. Raises an OSError if the kernel refuses it."""
    code = program(0 if acts else os.getpid(), platform.machine(), acts, hosts, talks)
    libc = ctypes.CDLL(None, use_errno=True)
    text = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(text))
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0):
        raise OSError(ctypes.get_errno(), "the seccomp filter was refused")
    if not acts:
        os.system = _no_shell  # the C library hides from its caller that there is no shell


def _no_shell(command: object) -> int:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), "sh")
