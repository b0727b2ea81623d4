"""Addresses, secrets from the environment and client settings, shared by providers that ask over HTTP."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator

from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import CallError, FatalCallError, MissingKeyError
from eval_pipeline.providers.validation import unshown

if TYPE_CHECKING:
    import ssl

_CONNECT_S = 10.0
# Shorter than the 5 s after which uvicorn and llama.cpp close an idle connection, possibly just when it is reused.
_KEPT_S = 3.0
_SHORTEST_SECRET = 8
_REDACTED = "[redacted]"
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]+")


def _base_url(text: str) -> str:
    if "@" in text or "?" in text or "#" in text:
        raise unshown("expected an address without user, password, query and fragment; keys come from the environment")
    parts = urlsplit(text)
    # `port` raises ValueError if it is not a number.
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ValueError(f"expected an address such as https://host/v1, found {text!r:.60}")
    return text.rstrip("/")


def _environment_name(text: str) -> str:
    if not _ENVIRONMENT_NAME.fullmatch(text):
        # The text may be the secret itself, so the complaint must not repeat it.
        raise unshown("expected the name of an environment variable (letters, digits, _), not what is in it")
    return text


def _header_name(text: str) -> str:
    if not _HEADER_NAME.fullmatch(text):
        raise ValueError("expected the name of an HTTP header")
    return text


BaseUrl = Annotated[str, AfterValidator(_base_url)]
"""An http or https address without secrets and without a trailing slash."""

EnvironmentName = Annotated[str, AfterValidator(_environment_name)]
"""The name of an environment variable."""

HeaderName = Annotated[str, AfterValidator(_header_name)]
"""The name of an HTTP header."""


class Secrets:
    """Secret values, which are removed from error messages and stored answers."""

    def __init__(self, values: Iterable[str]) -> None:
        # In `Bearer abc…`, the second word alone is a secret too. Very short values (`none`, `EMPTY`) are placeholders,
        # and would match harmless texts.
        parts = {part for value in values for part in (value, *value.split())}
        self._values = sorted((part for part in parts if len(part) >= _SHORTEST_SECRET), key=len, reverse=True)

    def redact(self, text: str) -> str:
        """Returns the text with the secrets replaced."""
        for value in self._values:
            text = text.replace(value, _REDACTED)
        return text

    def redact_error(self, error: CallError | FatalCallError) -> CallError | FatalCallError:
        """Returns the error with the secrets removed from its message."""
        if isinstance(error, FatalCallError):
            return FatalCallError(self.redact(str(error)))
        return CallError(
            error.kind,
            self.redact(error.message),
            retryable=error.retryable,
            retry_after=error.retry_after,
            sent=error.sent,
        )


def read_secret(variable: str, version: ModelVersion) -> str:
    """Returns the secret in an environment variable.

    Raises FatalCallError if it is missing or not valid in a header.
    """
    value = os.environ.get(variable, "").strip()
    if not value:
        raise MissingKeyError(f"model version '{version.name}': the environment variable {variable} is not set")
    if not _HEADER_VALUE.fullmatch(value):
        raise FatalCallError(
            f"model version '{version.name}': the environment variable {variable} holds characters that no HTTP "
            "header can carry"
        )
    return value


def read_headers(headers_env: Mapping[str, str], version: ModelVersion) -> dict[str, str]:
    """Returns the headers with their values from the environment. Raises FatalCallError."""
    return {header: read_secret(variable, version) for header, variable in headers_env.items()}


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


OWN_AUTHORITY = "where an authority of your own signs, put the path of its certificate into SSL_CERT_FILE"
"""What helps if a certificate is not trusted."""


def distrusted(error: BaseException | None) -> bool:
    """Whether a connection failed because the certificate of the other side is not trusted here."""
    import ssl

    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def headers_of_streams(url: str) -> dict[str, str]:
    """Returns extra headers for a request whose answer is streamed.

    llama.cpp's server announces that it keeps the connection open after a streamed answer, but closes it; a request
    sent meanwhile is lost. On this machine, a new connection costs next to nothing.
    """
    return {"Connection": "close"} if is_loopback(url) else {}


@lru_cache(maxsize=1)
def _trusting(*_authorities: object) -> "ssl.SSLContext":
    """Clients share it, since reading all authorities takes longer than some calls."""
    import httpx2

    return httpx2.create_ssl_context()


def _authorities() -> Iterator[object]:
    """Yields what changes with the authorities: what the environment names, and the state of the file of them all."""
    import ssl

    named = os.environ.get("SSL_CERT_FILE")
    yield from (named, os.environ.get("SSL_CERT_DIR"))
    with suppress(OSError):
        state = os.stat(named or ssl.get_default_verify_paths().openssl_cafile)
        yield from (state.st_ino, state.st_mtime_ns)


def client_arguments(url: str, version: ModelVersion) -> dict[str, Any]:
    """Returns the arguments of an `httpx2.AsyncClient` for an address.

    The caller enforces the deadline of a question; the time-out here only ends connections that nobody waits for.
    """
    import httpx2

    return {
        # Authorities that the environment names count for this machine too, unlike its proxies.
        "verify": _trusting(*_authorities()),
        "trust_env": not is_loopback(url),  # proxies of the environment are meant for other machines
        "timeout": httpx2.Timeout(version.deadline_s, connect=min(_CONNECT_S, version.deadline_s), pool=None),
        # The caller limits the calls in flight, so there is no limit here.
        "limits": httpx2.Limits(
            max_connections=None, max_keepalive_connections=version.concurrency, keepalive_expiry=_KEPT_S
        ),
    }
