"""Small files that count as missing where their digest does not match; and what code makes for later processes."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from eval_pipeline.core.system.private import file_mode

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


def write_sealed(path: Path, text: str) -> None:
    """Writes a file atomically, with its digest in the first line.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=".made-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{_text_digest(text)}\n{text}")
        os.chmod(aside, file_mode())
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise


def read_sealed(path: Path) -> str | None:
    """Returns the text that `write_sealed` wrote; None if the file is missing or was changed."""
    try:
        digest, _, text = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return text if digest == _text_digest(text) else None


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
