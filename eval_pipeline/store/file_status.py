"""What distinguishes a file of the record from one that replaced it."""

import os

FileStatus = tuple[int, int, int]
"""Size, modification time in nanoseconds and inode; of an object, size and a number made from its ETag, and 0."""


def file_status(status: os.stat_result) -> FileStatus:
    """Returns the status of a file on the disk."""
    return (status.st_size, status.st_mtime_ns, status.st_ino)
