"""Giving memory back to the operating system."""

import ctypes
import sys

_M_ARENA_MAX = -8
"""The number of this option in glibc's malloc.h."""


def give_back_memory() -> None:
    """Returns free memory of the C heap to the operating system; does nothing where the C library cannot."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except AttributeError:  # the C library is not glibc
            return


def limit_arenas(most: int) -> None:
    """Lets all threads share some heaps; by default each has its own, and keeps what it freed.

    Call it before threads start. Does nothing where the C library cannot.

    Args:
        most: the most heaps.
    """
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, most)
        except AttributeError:  # the C library is not glibc
            return
