"""Removes privileges from a zygote and from the processes of its snippets. Linux only, standard library only."""

import ctypes
import os
import signal
import struct

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_CAPABILITY_VERSION_3 = 0x20080522  # linux/capability.h

_libc = ctypes.CDLL(None, use_errno=True)


def be_unreadable() -> None:
    """Prevents other processes of the same user from reading or tracing this one through /proc or ptrace."""
    _checked(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0))


def be_readable() -> None:
    """Permits what `be_unreadable` prevents, in a process that was forked from one that is."""
    _checked(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0))


def die_with(parent: int) -> None:
    """Makes the kernel kill this process when its parent ends, or at once if that has already happened."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != parent:
        os._exit(0)


def drop_capabilities() -> None:
    """Removes all capabilities, so that nothing but the user id of root remains."""
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, bytes(24)))


def _checked(returned: int) -> None:
    if returned:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
