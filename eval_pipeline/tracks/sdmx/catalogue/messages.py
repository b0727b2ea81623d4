"""Reads the structure messages of a file, in any format and packing, and says what is wrong with them."""

from collections.abc import Iterator
from pathlib import Path

from eval_pipeline.core.errors import Problem
from eval_pipeline.core.foreign import UnreadableFileError
from eval_pipeline.tracks.sdmx.catalogue.artefacts import Artefacts
from eval_pipeline.tracks.sdmx.catalogue.packed import PACKED, first_character, messages_in
from eval_pipeline.tracks.sdmx.catalogue.references import MessageError
from eval_pipeline.tracks.sdmx.catalogue.sdmx_json import read_json
from eval_pipeline.tracks.sdmx.catalogue.sdmx_ml import read_ml

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
                _read(content, artefacts, file)
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


def _read(content: bytes, artefacts: Artefacts, file: str) -> None:
    if not content.strip():
        raise UnreadableFileError("is empty")
    reader = read_json if first_character(content) in {b"{", b"["} else read_ml
    reader(content.removeprefix(b"\xef\xbb\xbf"), artefacts, file)


def _line_of(error: Exception) -> int | None:
    line = getattr(error, "lineno", None)
    return line if isinstance(line, int) and line > 0 else None


def _words(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"'{error.args[0]}' is missing"
    if isinstance(error, AttributeError | TypeError):  # Python's words are about this program, not about the file
        return "a part of it is of another kind than the standard says, such as a text in place of an object"
    return str(error)
