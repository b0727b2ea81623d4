"""Keeps what installed code makes from nothing else, beside that code's bytecode, for all later processes."""

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "__pycache__"
_MOST = 8
"""Files of one name that are kept: other versions of libraries and of plug-ins make other contents."""
_DIGEST_SIZE = 32


def kept(name: str, made_from: Sequence[str], make: Callable[[], bytes]) -> bytes:
    """Returns what `make` returns, without calling it if an earlier process has kept that.

    Where nothing can be kept, or what was kept is damaged, `make` is called.

    Args:
        name: beginning of the file's name.
        made_from: everything that decides the result.
        make: makes it.
    """
    path = _FOLDER / f"{name}-{_digest(repr(list(made_from)).encode())[:16].hex()}"
    with suppress(OSError):
        content = path.read_bytes()
        digest, body = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
        if digest == _digest(body):
            return body
    body = make()
    with suppress(OSError):
        _write(path, _digest(body) + body)
        _remove_oldest(name)
    return body


def _write(path: Path, content: bytes) -> None:
    import tempfile  # imported here because most processes have nothing to write

    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(aside, path)
    except OSError:
        os.unlink(aside)
        raise


def _remove_oldest(name: str) -> None:
    found = sorted(_FOLDER.glob(f"{name}-*"), key=lambda path: path.stat().st_mtime_ns)
    for path in found[:-_MOST]:
        path.unlink(missing_ok=True)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest()
