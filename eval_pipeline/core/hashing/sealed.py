"""Small files that start with a digest of their contents. A file whose digest does not match counts as missing."""

import hashlib
import os
import tempfile
from pathlib import Path

from eval_pipeline.core.system.private import file_mode


def write_sealed(path: Path, text: str) -> None:
    """Writes a file atomically, with its digest in the first line.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=".made-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{_digest(text)}\n{text}")
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
    return text if digest == _digest(text) else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
