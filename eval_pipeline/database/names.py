"""Names of leases."""

from collections.abc import Sequence

PROCESSES = "process/"
"""How the names of leases of processes begin."""

DAEMON = "daemon"
"""The lease of the host that runs Dagster's daemon."""


def process_name(process: str) -> str:
    """Returns the name of the lease of a process, which is named by host, process id and start time."""
    return f"{PROCESSES}{process}"


def lock_name(parts: Sequence[str]) -> str:
    """Returns the name of the lease in the place of a lock file, by its folders and name."""
    return "/".join(("locks", *parts))
