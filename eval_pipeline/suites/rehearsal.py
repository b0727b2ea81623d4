"""Reads databases and structures of a suite in a child process first, so that a crash there does not harm this one."""

from pathlib import Path

from pydantic_core import to_jsonable_python

from eval_pipeline import __version__
from eval_pipeline.core.arms_length import at_arms_length
from eval_pipeline.core.home import find_home
from eval_pipeline.core.ids import files_hash, json_hash, text_hash
from eval_pipeline.core.model import Json
from eval_pipeline.suites.headers import SuiteSource, read_header, suite_files
from eval_pipeline.tracks.capabilities import Shares


def rehearse(source: SuiteSource) -> None:
    """Reads what the cases of a suite share in a child process, unless the same files were read before.

    Raises:
        InputError: reading a file crashed the child; the message names the file.
    """
    options = source.require().options
    content = text_hash(f"{__version__} {files_hash(suite_files(source))} {json_hash(options)}")
    done = find_home().checked / f"{content}.read"
    if not done.exists():
        at_arms_length(read_shared, [str(source.folder), to_jsonable_python(options)], [source.folder])
        done.parent.mkdir(parents=True, exist_ok=True)
        done.touch()


def read_shared(folder: str, options: dict[str, Json]) -> None:
    """Reads what the cases of a suite share, without returning it.

    Raises:
        EvalError: something in it is wrong.
    """
    source = read_header(Path(folder))
    track = source.track()
    assert isinstance(track, Shares)
    track.read_shared(source.folder, options)
