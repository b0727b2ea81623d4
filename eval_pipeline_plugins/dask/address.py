"""Where the cluster is: `EVAL_CLUSTER`, and the certificates without which no other machine is let in."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.system.bucket_address import is_this_machine
from eval_pipeline.workspace.shards.cluster import ADDRESS

CERTIFICATES = {"ca": "EVAL_CLUSTER_CA", "certificate": "EVAL_CLUSTER_CERT", "key": "EVAL_CLUSTER_KEY"}


@dataclass(frozen=True, slots=True)
class Address:
    """A scheduler's address.

    Attributes:
        url: `tcp://host:port` on this machine, or `tls://host:port`.
        ca, certificate, key: files in PEM form; only with `tls://`.
    """

    url: str
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


def cluster_address() -> Address:
    """Returns the address that the environment names.

    Whoever reaches a scheduler can run any code on its workers, so that an open port is refused.

    Raises:
        UsageError: the address is malformed, is not on this machine and has no `tls://`, or lacks certificates.
    """
    url = os.environ.get(ADDRESS, "").strip()
    scheme, host = _parts(url)
    if scheme == "tcp":
        if not is_this_machine(host):
            raise UsageError(
                f"{ADDRESS}={url} is refused: whoever reaches an open scheduler can run any code on its workers; "
                f"beyond this machine use tls:// with {', '.join(CERTIFICATES.values())}"
            )
        return Address(url)
    files = {name: os.environ.get(variable, "").strip() for name, variable in CERTIFICATES.items()}
    if unset := [CERTIFICATES[name] for name, path in files.items() if not path]:
        raise UsageError(f"{ADDRESS}={url} needs certificates: set {', '.join(unset)} to files in PEM form")
    paths = {name: Path(path) for name, path in files.items()}
    if absent := [f"{CERTIFICATES[name]}={path}" for name, path in paths.items() if not path.is_file()]:
        raise UsageError(f"{', '.join(absent)}: there is no such file; {ADDRESS}={url} needs it")
    return Address(url, **paths)


def _parts(url: str) -> tuple[str, str]:
    """Returns scheme and host."""
    try:
        found = urlsplit(url)
        if found.scheme in ("tcp", "tls") and found.hostname and found.port and not found.path.strip("/"):
            return found.scheme, found.hostname
    except ValueError:  # a port that is no number
        pass
    raise UsageError(f"{ADDRESS}={url}: expected tcp://127.0.0.1:8786, or tls://host:8786 beyond this machine")
