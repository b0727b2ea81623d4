"""Memory for data from and to snippets that is not passed on to later snippets.

A forked process has a copy of its parent's memory, including freed parts. It could search that for the code and results
of earlier snippets, such as the reference solution. So such data is kept outside the ordinary heap.
"""

import mmap
import os

_CHUNK = 1 << 16


class Buffer:
    """A limited number of bytes outside the heap.

    Attributes:
        length: how many bytes it contains.
    """

    def __init__(self, most: int, *, inherited: bool = False) -> None:
        """Reserves address space; memory is only used for the contents.

        Args:
            most: maximum number of bytes that it can hold.
            inherited: whether forked processes see the contents.
        """
        self.length = 0
        self._most = most
        self._memory = mmap.mmap(-1, most + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if not inherited:
            self._memory.madvise(mmap.MADV_DONTFORK)

    @property
    def over(self) -> bool:
        """Returns whether more data arrived than it can hold."""
        return self.length > self._most

    def contents(self) -> memoryview:
        """Returns the contents without copying; invalid after `clear`."""
        return memoryview(self._memory)[: min(self.length, self._most)]

    def read(self, descriptor: int, most: int = _CHUNK) -> int:
        """Reads once from a descriptor and returns the number of bytes, 0 at its end.

        Raises:
            BlockingIOError: there is nothing to read.
        """
        room = memoryview(self._memory)[self.length : min(self.length + most, self._most + 1)]
        count = os.readv(descriptor, [room])
        self.length += count
        return count

    def clear(self) -> None:
        """Discards the contents and frees the memory."""
        if self.length:
            self._memory.madvise(mmap.MADV_DONTNEED)
        self.length = 0
