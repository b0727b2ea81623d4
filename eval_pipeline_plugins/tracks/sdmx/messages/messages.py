"""Reads the structure messages of a file, in any format and packing, and says what is wrong with them."""

import gzip
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path, PurePosixPath

from eval_pipeline.core.errors import Problem
from eval_pipeline.core.reading.foreign import MOST_BYTES, UnreadableFileError, read_bytes
from eval_pipeline_plugins.tracks.sdmx.messages.artefacts import Artefacts
from eval_pipeline_plugins.tracks.sdmx.messages.references import MessageError
from eval_pipeline_plugins.tracks.sdmx.messages.sdmx_json import read_json
from eval_pipeline_plugins.tracks.sdmx.messages.sdmx_ml import read_ml

PACKED = (".gz", ".zip")


_PLAIN, _PAGES = frozenset({".xml", ".json"}), frozenset({".html", ".htm", ".xhtml", ".md"})


_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


def messages_in(path: Path) -> Iterator[tuple[str, bytes | None]]:
    """Yields name and content of each message in a file; packing is recognised by content, not by file name.

    The content of what else is in an archive, such as a `readme.txt`, is None.

    Raises:
        OSError: the file cannot be read, is a folder, or is too large, packed or unpacked.
        zipfile.BadZipFile: the archive is damaged.
    """
    content = read_bytes(path)
    if content.startswith(_ZIP):
        with zipfile.ZipFile(BytesIO(content)) as archive:
            left = MOST_BYTES
            for member in archive.infolist():
                if not member.is_dir():
                    with archive.open(member) as file:
                        unpacked = file.read(left + 1)
                    left -= len(unpacked)
                    is_message = left < 0 or _is_message(PurePosixPath(member.filename), unpacked)
                    yield f"{path}/{member.filename}", _whole(unpacked, left) if is_message else None
    elif content.startswith(_GZIP):
        with gzip.GzipFile(fileobj=BytesIO(content)) as file:
            unpacked = file.read(MOST_BYTES + 1)
        yield str(path), _whole(unpacked, MOST_BYTES - len(unpacked))
    else:
        yield str(path), _whole(content, 0)


def first_character(content: bytes) -> bytes:
    """Returns the first character of a text in any form of Unicode, after byte order mark and white space."""
    return content[:4096].lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n")[:1]


def _is_message(name: PurePosixPath, content: bytes) -> bool:
    """Whether a file of an archive is meant as a message: by its name, else by what it begins with."""
    if name.name.startswith("."):  # archives made on a Mac contain a second file, `._name`, for each file
        return False
    suffix = name.suffix.lower()
    return suffix in _PLAIN or (suffix not in _PAGES and first_character(content) in {b"<", b"{", b"["})


def _whole(content: bytes, left: int) -> bytes:
    if left < 0:
        raise UnreadableFileError(f"unpacks to more than {MOST_BYTES:,} bytes")
    return content


SUFFIXES = (".xml", ".json", *PACKED)


def read_messages(path: Path, artefacts: Artefacts) -> Iterator[Problem]:
    """Adds the artefacts of the messages in a file; yields a problem if one of them cannot be read."""
    file, messages = str(path), 0
    try:
        for file, content in messages_in(path):
            if content is None:
                artefacts.remarks[file, "is no structure message, and was skipped"] = None
            else:
                messages += 1
                if not content.strip():
                    raise UnreadableFileError("is empty")
                reader = read_json if first_character(content) in {b"{", b"["} else read_ml
                reader(content.removeprefix(b"\xef\xbb\xbf"), artefacts, file)
        if not messages:
            yield Problem(str(path), None, "", f"holds no structure message ({', '.join(SUFFIXES[:2])})")
    except MessageError as error:
        yield Problem(file, _line_of(error), "", str(error))
    except IsADirectoryError:
        yield Problem(file, None, "", "is a folder; expected the files in it, each by its name")
    except OSError as error:
        yield Problem(file, None, "", f"is no SDMX structure message: it {error}")
    except Exception as error:  # parsers of foreign files may raise anything
        yield Problem(file, _line_of(error), "", f"is no SDMX structure message: {_words(error)}")


def _line_of(error: Exception) -> int | None:
    line = getattr(error, "lineno", None)
    return line if isinstance(line, int) and line > 0 else None


def _words(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"'{error.args[0]}' is missing"
    if isinstance(error, AttributeError | TypeError):  # Python's words are about this program, not about the file
        return "a part of it is of another kind than the standard says, such as a text in place of an object"
    return str(error)
