"""Files of reviews below `reviews/`: one file per person, one line per review, append-only.

When two branches are merged, the lines of both are kept (`merge=union`). If a host writes conflict marks instead, both
sides are still read. Ids are random, so a duplicated line counts once.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from eval_pipeline.core.errors import Problem, StoreError
from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.core.reading.foreign import lines_of
from eval_pipeline.store.durable import fsync_path, locked, make_folders, replace_durably, temporary_path, write_error
from eval_pipeline.suites.headers import REVIEWS_FOLDER, refuse_copy
from eval_pipeline.suites.reviews.review import Review

_PATIENCE_S = 30.0
_MARKS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")
_ATTRIBUTES = "# Lines of both sides of a merge are kept: each has an id of its own.\n*.jsonl merge=union\n"
_TRIES = 10


@dataclass(frozen=True, slots=True)
class ReviewFiles:
    """The contents of a suite's review files.

    Attributes:
        reviews: each once, sorted by time; including superseded ones.
        problems: lines that are not valid reviews.
    """

    reviews: tuple[Review, ...] = ()
    problems: tuple[Problem, ...] = ()


def reviews_folder(suite: Path) -> Path:
    """Returns the folder of a suite's reviews."""
    return suite / REVIEWS_FOLDER


def file_of(suite: Path, who: str) -> Path:
    """Returns the file of a person; names that differ only in case or punctuation have different files."""
    slug = re.sub(r"[^a-z0-9]+", "-", who.lower()).strip("-")[:40]
    name = slug if slug == who else f"{slug}-{text_hash(who)[:6]}".lstrip("-")
    return reviews_folder(suite) / f"{name}.jsonl"


def add_review(suite: Path, review: Review) -> Path:
    """Adds a review to its author's file; it is on the disk when this returns.

    Args:
        suite: the suite's folder.
        review: a review that is not in the file yet.

    Raises:
        StoreError: the folder cannot be written, or the disk is full; nothing is added then.
        UsageError: the folder is a copy of what is in a bucket.
    """
    refuse_copy(suite)
    path, line = file_of(suite, review.who), review.line().encode()
    try:
        _make_folder(path.parent)
        for _ in range(_TRIES):
            with locked(path, _PATIENCE_S) as handle:
                _set_torn_aside(path, handle)
                _append(path, handle, line)
                # A checkout may replace the file meanwhile; a review written to the removed file is written to the new
                # one again.
                if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                    return path
    except OSError as error:
        raise cannot_write(suite, error) from error
    except StoreError as error:
        if isinstance(error.__cause__, OSError):
            raise cannot_write(suite, error.__cause__) from error
        raise
    raise StoreError(f"{path} is replaced again and again by another program; end that one and review again")


def read_reviews(suite: Path) -> ReviewFiles:
    """Returns every review below a suite's folder, and the problems of invalid lines."""
    found: dict[str, Review] = {}
    problems: list[Problem] = []
    folder = reviews_folder(suite)
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        for review in _reviews_in(path, path.relative_to(suite.parent).as_posix()):
            if isinstance(review, Problem):
                problems.append(review)
            elif (first := found.setdefault(review.id, review)) != review:
                told = f"another review has the id {review.id}, by {first.who} on {first.turn_id}; this one is left out"
                problems.append(Problem(path.relative_to(suite.parent).as_posix(), None, "id", told))
    return ReviewFiles(tuple(sorted(found.values(), key=lambda one: (one.at, one.id))), tuple(problems))


def _reviews_in(path: Path, name: str) -> Iterator[Review | Problem]:
    try:
        for number, line in enumerate(lines_of(path), start=1):
            if not line.strip():
                continue
            if line.startswith(_MARKS):
                yield Problem(
                    name, number, "", "git's mark of a conflict; both sides are read, the mark can be removed"
                )
                continue
            try:
                yield Review.model_validate(from_json(line))
            except ValidationError as error:
                for place, message in complaints(error, Review):
                    yield Problem(name, number, dotted(place), message)
            except ValueError as error:
                cut = "was cut off, as by a kill" if not line.endswith(b"\n") else f"not a JSON object: {error}"
                yield Problem(name, number, "", f"{cut}; the line is left out")
    except OSError as error:
        yield Problem(name, None, "", f"cannot be read: {error}")


def _make_folder(folder: Path) -> None:
    make_folders(folder)
    attributes = folder / ".gitattributes"
    if not attributes.exists():  # written atomically: with half of it, a merge would conflict
        temporary = temporary_path(attributes)
        temporary.write_text(_ATTRIBUTES)
        fsync_path(temporary)
        replace_durably(temporary, attributes)


def _set_torn_aside(path: Path, handle: int) -> None:
    """Moves an incomplete last line, left by a killed writer, to a file beside, so that no line is appended to it."""
    size = os.fstat(handle).st_size
    if not size or os.pread(handle, 1, size - 1) == b"\n":
        return
    whole = os.pread(handle, size, 0)
    start = whole.rfind(b"\n") + 1
    tail = whole[start:]
    try:
        Review.model_validate(from_json(tail))
    except ValueError:
        with path.with_suffix(".torn").open("ab") as aside:
            aside.write(tail + b"\n")
            aside.flush()
            os.fsync(aside.fileno())
        os.ftruncate(handle, start)
    else:
        os.pwrite(handle, b"\n", size)  # only the line end was missing
    os.fsync(handle)


def _append(path: Path, handle: int, line: bytes) -> None:
    size = os.fstat(handle).st_size
    try:
        written = 0
        while written < len(line):
            written += os.pwrite(handle, line[written:], size + written)
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise
    if not size:
        fsync_path(path.parent)


def cannot_write(suite: Path, error: OSError) -> StoreError:
    """Returns the error for a suite's folder in which reviews cannot be stored."""
    told = write_error(reviews_folder(suite), error)
    if "no room" in str(told):
        return told
    return StoreError(f"{told}; reviews are kept beside the suite, so its folder {suite} has to be writable")
