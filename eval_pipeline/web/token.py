"""The access token of a home: whoever can read the home's files may use its pages."""

import os
import secrets
from pathlib import Path

from eval_pipeline.core.system.private import file_mode

NO_TOKEN = "EVAL_UI_NO_TOKEN"  # noqa: S105, a name
"""Environment variable: `1` if a proxy controls access instead of the token."""
_BYTES = 32


def token_of(path: Path) -> str:
    """Returns the token in a file, creating it if needed; only people who share the home can read the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, file_mode())
    except FileExistsError:
        token = path.read_text().strip()
        if token:
            return token
        handle = os.open(path, os.O_WRONLY)  # a process was killed between creating and writing the file
    token = secrets.token_urlsafe(_BYTES)
    with os.fdopen(handle, "w") as file:
        file.write(token)
    return token
