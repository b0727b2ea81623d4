"""Purges a model version's responses wherever they are kept in addition to record, reports and store.

One rule applies everywhere: a response is removed if no remaining evaluation contains it, and if it belongs to the
model version or nobody knows to whom. So nothing needs to be known about removed evaluations, and a second call
completes the first. In a database, which other homes may share, what belongs to nobody here may belong to them: only
what the model version itself has asked for is removed.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from eval_pipeline.asking.journal.codec import FirstAsker
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition, Response
from eval_pipeline.judge.cache import purge_judgements
from eval_pipeline.reports.places.paths import safe_name
from eval_pipeline.state.place import state_place
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import GENERATIONS, JUDGEMENTS, MODEL_VERSIONS, RECOVERY_ATTEMPTS
from eval_pipeline.workspace.homes.imported import remove_path
from eval_pipeline.workspace.homes.kept import kept_of_answers
from eval_pipeline.workspace.tabled.track_tables import partition_tables
from eval_pipeline.workspace.workspace import Workspace

_TOLD_BY = ("response", "asked_on", "input_tokens", "output_tokens", "latency_ms")
_Held = set[bytes]


@dataclass(frozen=True, slots=True)
class Removal:
    """What is to be removed.

    Attributes:
        suites: only these suites; None: all suites, and the model version itself.
        purge: also remove its responses, wherever the home keeps them.
    """

    model_version: str
    suites: frozenset[str] | None = None
    purge: bool = False

    def covers(self, suite: str | None) -> bool:
        """Whether the removal covers the suite."""
        return self.suites is None or suite in self.suites


@dataclass(frozen=True, slots=True)
class Purged:
    """Numbers of purged items in addition to record, reports and store, or of those that would be.

    Attributes:
        responses: journal entries.
        of_nobody: those of them written by an older version, which did not record who asked.
        batches: records of submitted batches.
        judgements: entries of the judge's cache.
        files: predictions, exports, damaged files set aside by a repair, and what is kept of executing and comparing
            answers, whosever they are.
    """

    responses: int
    of_nobody: int
    batches: int
    judgements: int
    files: int


def purge(workspace: Workspace, removal: Removal, gone: Collection[Partition], *, dry_run: bool) -> Purged:
    """Removes the model version's responses from journal, judge's cache, predictions and exports.

    Args:
        workspace: the workspace.
        removal: what is removed.
        gone: its evaluations, which still exist in a dry run.
        dry_run: only count.

    Raises:
        StoreError: a file cannot be written or is in use.
    """
    stays = _Stays(workspace, frozenset(map(RecordKey.of, gone)))
    responses = stays.digests(GENERATIONS) | stays.digests(RECOVERY_ATTEMPTS)

    def goes(response: Response, asker: FirstAsker | None) -> bool:
        return stays.is_free(asker, removal) and _of_response(response) not in responses

    every = removal.suites is None
    journal = state_place().purged_journal(
        workspace.home.journal, goes, removal.model_version, every_suite=every, dry_run=dry_run
    )
    judgements = stays.judgements()
    judged = purge_judgements(
        workspace.home.judgements, lambda one: _digest(one.value, one.choice, one.reason) in judgements, dry_run=dry_run
    )
    predictions, others = _predictions(workspace.home, removal), list(_files(workspace, removal))
    counted = sum(1 for path in (*predictions, *others) for found in _within(path) if found.is_file())
    for path in () if dry_run else predictions:
        _remove(path, workspace.imported.remove)
    for path in () if dry_run else others:
        _remove(path)
    return Purged(*journal, judged, counted)


class _Stays:
    """The responses and judgements in the evaluations that remain."""

    def __init__(self, workspace: Workspace, gone: frozenset[RecordKey]) -> None:
        self._record, self._gone = workspace.record, gone
        self._shared = state_place().is_shared
        # `runs` alone is not enough: files set aside by a repair were not removed on purpose, and their answers are
        # still needed.
        found = {key for table in partition_tables() for key in self._record.partitions(table)} - gone
        self._places = {(key.suite, key.model_version) for key in found}
        self._names = {key.model_version for key in found}

    def is_free(self, asker: FirstAsker | None, removal: Removal) -> bool:
        """Whether an unused response may be removed: no other model version that still exists has asked for it."""
        if asker is None:
            return not self._shared
        if asker.model_version == removal.model_version and (not asker.suite or removal.covers(asker.suite)):
            return True
        if self._shared:
            return False
        # It was first asked for by a model version that is gone, and then used by the one being removed.
        known = (
            (asker.suite, asker.model_version) in self._places if asker.suite else asker.model_version in self._names
        )
        return not known

    def digests(self, table: Table) -> _Held:
        """Returns digests of the responses of attempts."""
        held: _Held = set()
        for key in self._keys(table):
            for group in self._record.row_groups(table, key, _TOLD_BY):
                held.update(_digest(*row.values()) for row in group.to_pylist() if row["response"] is not None)
        return held

    def judgements(self) -> _Held:
        """Returns digests of judgements."""
        columns = ("value", "choice", "reason")
        held: _Held = set()
        for key in self._keys(JUDGEMENTS):
            rows = self._record.read(JUDGEMENTS, key, columns).to_pylist()
            held.update(_digest(row["value"], row["choice"] or "", row["reason"] or "") for row in rows)
        return held

    def _keys(self, table: Table) -> Iterator[RecordKey]:
        earlier = (key for key in self._record.partitions(table, earlier=True) if key.of_date not in self._gone)
        return chain((key for key in self._record.partitions(table) if key not in self._gone), earlier)


def _of_response(response: Response) -> bytes:
    usage = response.usage
    return _digest(response.text, response.asked_on, usage.input_tokens, usage.output_tokens, response.latency_ms)


def _digest(*values: object) -> bytes:
    """Returns a 16-byte digest of the values; lone surrogates are replaced by U+FFFD, as in the record."""
    text = "\0".join(str(value) for value in values)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return hashlib.blake2b(whole.encode(), digest_size=16).digest()


def _predictions(home: Home, removal: Removal) -> list[Path]:
    folder = home.predictions / removal.model_version
    return [folder] if removal.suites is None else [folder / f"{suite}.jsonl" for suite in sorted(removal.suites)]


def _files(workspace: Workspace, removal: Removal) -> Iterator[Path]:
    """Yields exports and files set aside by repairs, which include whole journals of unknown owners.

    What is kept of answers goes whole: nothing says whose they are, and it is made again.
    """
    home, name = workspace.home, safe_name(removal.model_version)
    (own,) = RecordKey.of_model_version(removal.model_version).folders(MODEL_VERSIONS)
    yield from (folder for folder in home.exports.glob(f"*/{name}") if removal.covers(folder.parent.name))
    yield from kept_of_answers(home)
    damaged = home.root / "damaged"
    yield from damaged.glob("*/*.sqlite*")
    for folder in damaged.glob(f"*/record/*/suite=*/{own}"):
        if removal.suites is None or folder.parent.name.removeprefix("suite=") in removal.suites:
            yield folder


def _within(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir():
        yield from path.rglob("*")


def _remove(path: Path, remove: Callable[[Path], None] = remove_path) -> None:
    try:
        remove(path)
    except OSError as error:
        raise StoreError(f"cannot remove {path}: {error.strerror or error}") from error
