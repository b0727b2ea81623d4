"""Reads databases, structures and tables of a suite in a child process first, so that a crash there harms none here."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic_core import to_jsonable_python

from eval_pipeline import __version__
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import file_hash, files_hash, json_hash, text_hash
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.arms_length import at_arms_length
from eval_pipeline.core.reading.entries import read_entries
from eval_pipeline.suites.headers import SuiteSource, read_header, suite_files
from eval_pipeline.tracks.capabilities import Shares


def rehearse(source: SuiteSource) -> None:
    """Reads what the cases of a suite share in a child process, unless the same files were read before.

    Raises:
        InputError: reading a file crashed the child; the message names the file.
    """
    options = source.require().options
    content = text_hash(f"{__version__} {files_hash(suite_files(source))} {json_hash(options)}")
    _once(content, read_shared, [str(source.folder), to_jsonable_python(options)], source.folder)


def rehearse_table(path: Path) -> None:
    """Reads a table of entries in a child process, unless the same content was read before; raises as `rehearse`."""
    _once(text_hash(f"{__version__} {file_hash(path)}"), read_table, [str(path)], path)


def _once(content: str, work: Callable[..., None], arguments: Sequence[Json], below: Path) -> None:
    done = find_home().checked / f"{content}.read"
    if not done.exists():
        at_arms_length(work, arguments, [below])
        done.parent.mkdir(parents=True, exist_ok=True)
        done.touch()


def read_table(path: str) -> None:
    """Reads a table of entries, without returning it."""
    for _ in read_entries(Path(path), path):
        pass


def read_shared(folder: str, options: dict[str, Json]) -> None:
    """Reads what the cases of a suite share, without returning it.

    Raises:
        EvalError: something in it is wrong.
    """
    source = read_header(Path(folder))
    track = source.track()
    assert isinstance(track, Shares)
    track.read_shared(source.folder, options)
