"""Memory for what comes from a snippet or goes to one, of which the next one inherits nothing.

A process that is forked has the memory of its parent, freed parts too, and could look there for the code and results
of earlier snippets (the reference solution, say). So these do not pass through the ordinary heap.
"""

import mmap
import os

_CHUNK = 1 << 16


class Buffer:
    """Bytes up to a limit, outside the heap.

    Attributes:
        length: bytes in it.
    """

    def __init__(self, most: int, *, inherited: bool = False) -> None:
        """Takes address space; memory only for what is in it.

        Args:
            most: bytes it holds at most.
            inherited: whether forked processes see what is in it.
        """
        self.length = 0
        self._most = most
        self._memory = mmap.mmap(-1, most + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if not inherited:
            self._memory.madvise(mmap.MADV_DONTFORK)

    @property
    def over(self) -> bool:
        """Whether more came than it holds."""
        return self.length > self._most

    def contents(self) -> memoryview:
        """What is in it, not copied; of no use after `clear`."""
        return memoryview(self._memory)[: min(self.length, self._most)]

    def read(self, descriptor: int, most: int = _CHUNK) -> int:
        """Takes in what a descriptor has to give, once; the number of bytes, 0 at its end.

        Raises:
            BlockingIOError: nothing there.
        """
        room = memoryview(self._memory)[self.length : min(self.length + most, self._most + 1)]
        count = os.readv(descriptor, [room])
        self.length += count
        return count

    def clear(self) -> None:
        """Forgets what is in it and gives the memory back."""
        if self.length:
            self._memory.madvise(mmap.MADV_DONTNEED)
        self.length = 0
