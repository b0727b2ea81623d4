"""Names of leases."""

from collections.abc import Sequence


def process_name(process: str) -> str:
    """Returns the name of the lease of a process, which is named by host, process id and start time."""
    return f"process/{process}"


def lock_name(parts: Sequence[str]) -> str:
    """Returns the name of the lease in the place of a lock file, by its folders and name."""
    return "/".join(("locks", *parts))
