"""A home in a bucket: `EVAL_HOME=s3://bucket/prefix`, what it needs, and the folder of this host that goes with it."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from eval_pipeline.core.errors import UsageError

HOME = "EVAL_HOME"
SCRATCH = "EVAL_SCRATCH"
"""Environment variable: where hosts keep their own files of homes in buckets."""
SCHEME = "s3"
_EXPECTED = "expected s3://bucket/prefix"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Variables by which obstore learns another endpoint than Amazon's; the first one that is set counts."""


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """A bucket, and the prefix of all names in it."""

    bucket: str
    prefix: str

    def __str__(self) -> str:
        """Returns the address as `EVAL_HOME` has it."""
        return f"{SCHEME}://{self.bucket}/{self.prefix}".rstrip("/")


def bucket_address(home: str, env: Mapping[str, str] = os.environ) -> BucketAddress | None:
    """Returns the address that `EVAL_HOME` names; None if that is a folder.

    Raises:
        UsageError: the address is malformed, or what a home in a bucket needs is missing.
    """
    address = secret_address(home, env)
    if address is None:
        return None
    if not env.get("EVAL_DATABASE_URL", "").strip():
        raise UsageError(f"{HOME}={address} needs EVAL_DATABASE_URL, for the journal and the leases (docs/scale.md)")
    if (form := env.get("EVAL_STORE", "").strip()) not in ("", "catalog"):
        raise UsageError(f"{HOME}={address} is published as a catalog; unset EVAL_STORE, which is '{form}'")
    return address


def secret_address(home: str, env: Mapping[str, str] = os.environ) -> BucketAddress | None:
    """Returns the address, for one who needs no database, as workers of a cluster; None if it is a folder.

    Raises:
        UsageError: the address is malformed, or everyone on the way to the bucket could read what is sent.
    """
    if "://" not in home:
        return None
    address = _parsed(home)
    _require_secrecy(endpoint(env))
    return address


def endpoint(env: Mapping[str, str] = os.environ) -> str:
    """Returns the endpoint's URL; empty for Amazon's own."""
    return next((found for name in _ENDPOINTS if (found := env.get(name, "").strip())), "")


def working_folder(address: BucketAddress, env: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder for what only this host needs of a home in a bucket; buckets of two endpoints have two."""
    base = env.get(SCRATCH, "").strip()
    cache = env.get("XDG_CACHE_HOME", "").strip() or str(Path.home() / ".cache")
    told = hashlib.sha256(f"{endpoint(env)} {address}".encode()).hexdigest()[:16]
    return (Path(base) if base else Path(cache) / "eval-pipeline").absolute() / f"{address.bucket}-{told}"


def _parsed(home: str) -> BucketAddress:
    if not home.startswith(f"{SCHEME}://"):
        raise UsageError(f"{HOME} begins with '{home.partition('://')[0]}://'; {_EXPECTED}, or a folder")
    try:
        parts = urlsplit(home)
        plain = parts.netloc == parts.hostname and not parts.query and not parts.fragment and parts.port is None
    except ValueError:
        plain = False
    if not plain:  # not quoted: it might hold a key
        raise UsageError(f"{HOME} is malformed; {_EXPECTED}, without keys, ports and parameters")
    names = [name for name in parts.path.split("/") if name]
    if {".", ".."} & set(names) or "%" in parts.path:
        raise UsageError(f"{HOME} has a prefix with '.', '..' or '%' in it; {_EXPECTED}")
    return BucketAddress(parts.netloc, "/".join(names))


def _require_secrecy(url: str) -> None:
    """Refuses an endpoint to which prompts and responses would travel in the clear."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError as error:
        raise UsageError("AWS_ENDPOINT_URL is malformed; expected https://host") from error
    if "@" in parts.netloc:  # messages name the endpoint
        raise UsageError("AWS_ENDPOINT_URL has a user or password in it; expected https://host, and AWS_ACCESS_KEY_ID")
    if not url or parts.scheme == "https":
        return
    if parts.scheme != "http":
        raise UsageError("AWS_ENDPOINT_URL is malformed; expected https://host")
    if not is_this_machine(host):
        raise UsageError(f"AWS_ENDPOINT_URL names http://{host}: beyond this machine it has to be https://")


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine itself."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
