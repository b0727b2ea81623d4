"""Where the database is: `EVAL_DATABASE_URL`, and what it has to have before another machine is trusted with state."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from eval_pipeline.core.errors import UsageError
from eval_pipeline.state.place import DATABASE_URL

_EXPECTED = "expected postgresql://user@127.0.0.1:5432/database"
_ELSEWHERE = ("PGHOSTADDR", "PGSERVICE")
"""Variables by which libpq would connect to another server than the URL names."""
_SERVERS = ("host", "hostaddr")
"""Parameters that name the server."""


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """A database's address.

    Attributes:
        url: as psycopg takes it; it may contain a password, so it must not be shown.
        shown: the address for messages: without password and parameters.
        password: for removing it from messages of libraries; empty if the URL has none.
    """

    url: str = field(repr=False)
    shown: str
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        """Returns the address for messages."""
        return self.shown

    def without_password(self, text: str) -> str:
        """Returns a text without the password, which a library might have quoted."""
        for secret in {self.password, unquote(self.password)} - {""}:
            text = text.replace(secret, "***")
        return text


def database_address() -> DatabaseAddress | None:
    """Returns the address that the environment names; None if state stays in files of the home.

    Raises:
        UsageError: the address is malformed, or is beyond this machine and its server would not be verified.
    """
    url = os.environ.get(DATABASE_URL, "").strip()
    if not url:
        return None
    parts, params = _parsed(url)
    address = DatabaseAddress(url, _shown(parts, params), parts.password or params.get("password", ""))
    if found := [name for name in _ELSEWHERE if os.environ.get(name)]:
        raise UsageError(
            f"{' and '.join(found)} would lead to another server than {DATABASE_URL} names; unset it, and name the "
            f"server in {DATABASE_URL}"
        )
    if not all(map(_is_here, _hosts(parts, params))):
        _require_verified(address, params)
    return address


def _parsed(url: str) -> tuple[SplitResult, Mapping[str, str]]:
    """Returns the URL's parts and parameters; what is wrong is told without the URL, which may contain a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        pairs = parse_qsl(parts.query, strict_parsing=bool(parts.query), keep_blank_values=True)
        # libpq knows no fragments: what follows # could name another server.
        malformed = "#" in url
    except ValueError:
        malformed = True
    if malformed:
        raise UsageError(f"{DATABASE_URL} is malformed; {_EXPECTED} (with %, @ and # in a password as %25, %40, %23)")
    params = dict(pairs)
    if len(params) < len(pairs):
        raise UsageError(f"{DATABASE_URL} has a parameter twice; {_EXPECTED}")
    hosts = list(_hosts(parts, params))
    if parts.scheme != "postgresql" or not parts.path.strip("/") or not hosts:
        raise UsageError(f"{DATABASE_URL} has to name a server and a database; {_EXPECTED}")
    # An empty host would have libpq take that of PGHOST.
    if any("," in host for host in hosts) or "service" in params or "" in (params.get(name) for name in _SERVERS):
        raise UsageError(f"{DATABASE_URL} has to name one server itself, without lists and services; {_EXPECTED}")
    return parts, params


def _hosts(parts: SplitResult, params: Mapping[str, str]) -> Iterator[str]:
    """Yields every host that the URL names: libpq takes `hostaddr` before `host`."""
    for host in (parts.hostname, *(params.get(name) for name in _SERVERS)):
        if host:
            yield unquote(host)


def _is_here(host: str) -> bool:
    """Whether a host is this machine: a folder of Unix sockets, or a loopback address."""
    if host == "localhost" or host.startswith("/"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _require_verified(address: DatabaseAddress, params: Mapping[str, str]) -> None:
    root = params.get("sslrootcert", "")
    if params.get("sslmode") != "verify-full" or not root:
        raise UsageError(
            f"{DATABASE_URL}={address} is refused: beyond this machine it needs sslmode=verify-full and "
            "sslrootcert=FILE, so that nobody else can pose as the server or read along"
        )
    if root != "system" and not Path(root).is_file():
        raise UsageError(f"{DATABASE_URL}={address}: there is no file {root}, which sslrootcert names")


def _shown(parts: SplitResult, params: Mapping[str, str]) -> str:
    host = unquote(parts.hostname or "") or params.get("host") or params.get("hostaddr", "")
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port else ""
    user = f"{parts.username}@" if parts.username else ""
    return f"postgresql://{user}{host}{port}/{parts.path.strip('/')}"
