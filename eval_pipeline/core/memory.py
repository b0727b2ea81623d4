"""Giving memory back to the operating system."""

import ctypes
import sys


def give_back_memory() -> None:
    """Returns what is free in the C heap; where the C library cannot, nothing happens."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except AttributeError:  # not glibc
            return
