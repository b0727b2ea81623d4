"""`doctor`: whether this installation can do what it should, and what to do where it cannot."""

import itertools
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from eval_pipeline.asking.journal.checking import check_journal
from eval_pipeline.core.errors import EvalError, InputError, Problem
from eval_pipeline.core.home import Home
from eval_pipeline.core.private import make_private
from eval_pipeline.operations.rescoring import Chosen, evaluations, outdated
from eval_pipeline.store.memo import is_as_published
from eval_pipeline.store.query import run_query
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import all_tables
from eval_pipeline.suites import read_suite
from eval_pipeline.workspace.progress import SILENT, busy
from eval_pipeline.workspace.track_tables import further_tables
from eval_pipeline.workspace.workspace import Progress, Workspace

PACKAGES = ("dagster", "duckdb", "pyarrow", "openpyxl", "genai-prices", "openai", "xllamacpp")
LEAST_FREE = 1_000_000_000
REPAIR = "`eval-pipeline doctor --repair` makes it again, and says what it cannot"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `remedy` says what to do where it is not fine."""

    topic: str
    fine: bool
    text: str
    remedy: str = ""


def examine(home: Home, progress: Progress = SILENT) -> Iterator[Finding]:
    """Looks at everything, one finding after the other; a broken thing never hides the next."""
    workspace = Workspace(home)
    looks: tuple[Callable[[Workspace], Iterator[Finding]], ...] = (
        _versions,
        _plugins,
        _disk,
        _suites,
        _model_versions,
        _providers,
        _python_sandbox,
        _keys,
        _journal,
        _record,
        _figures,
        _store,
    )
    for look in looks:
        topic = look.__name__.strip("_").replace("_", " ")
        try:
            with busy(progress, f"looking at: {topic}"):
                findings = list(look(workspace))
            yield from findings
        except (EvalError, OSError) as error:
            yield Finding(topic, False, str(error), "mend the file named")


def _versions(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline import __version__

    yield Finding("eval-pipeline", True, __version__)
    for name in PACKAGES:
        try:
            yield Finding(name, True, version(name))
        except PackageNotFoundError:
            yield Finding(name, name == "xllamacpp", "not installed", "run `make setup`")


def _plugins(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline.operations.plugins import plugins_with_trouble

    for plugin, trouble in plugins_with_trouble():
        text = trouble or f"{plugin.place}, from {plugin.origin}"
        yield Finding(f"{plugin.group} {plugin.name}", trouble is None, text, "mend or uninstall that package")


def _disk(workspace: Workspace) -> Iterator[Finding]:
    root = workspace.home.root
    make_private(root)
    free = shutil.disk_usage(root).free
    writable = os.access(root, os.W_OK)
    text = f"{root}: {free / 1e9:.1f} GB free" + ("" if writable else ", not writable")
    yield Finding("disk", writable and free > LEAST_FREE, text, "free some space or set EVAL_HOME to another folder")


def _suites(workspace: Workspace) -> Iterator[Finding]:
    for source in workspace.suites.values():
        fine, text = False, ""
        try:
            found = read_suite(source)
            fine, text = not found.problems, f"{source.folder}: {len(found.cases):,} cases"
            text += f"; others cannot be read: {_first(found.problems)}" if found.problems else ""
        except InputError as error:
            text = _first(error.problems)
        except EvalError as error:
            text = str(error)
        yield Finding(f"suite {source.name}", fine, text, "`eval-pipeline validate` says all that is wrong")


def _first(problems: Sequence[Problem]) -> str:
    more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}"


def _model_versions(workspace: Workspace) -> Iterator[Finding]:
    names = list(workspace.model_versions)
    yield Finding("model versions", bool(names), f"{len(names)}: {', '.join(names)}", "add one to model_versions.yaml")


def _providers(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline.providers.registry import all_traits

    for name, traits in all_traits().items():
        if traits.packages:  # nothing else needs these
            yield Finding(f"provider {name}", True, traits.lacks() or "can run here")


def _python_sandbox(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline.sandbox.diagnosis import diagnose

    found = diagnose()
    text = "; ".join([found.title or "nothing here can hold model-written code", *found.reasons])
    # Only tracks whose models write Python need one; a lesser tier holds too.
    advice = "" if found.best else f"; for the best: {found.remedy}"
    yield Finding("python sandbox", found.title is not None, text + advice, found.remedy)


def _keys(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline.providers.registry import all_traits

    for name in dict.fromkeys(traits.key_variable for traits in all_traits().values() if traits.key_variable):
        yield Finding(f"key {name}", True, "set" if os.environ.get(name) else "not set")


def _journal(workspace: Workspace) -> Iterator[Finding]:
    path = workspace.home.journal
    if not path.exists():
        yield Finding("journal", True, f"{path}: none yet")
        return
    try:
        found = check_journal(path)
    except sqlite3.Error as error:  # it could not be read, which says nothing of what is in it
        yield Finding("journal", False, f"{path}: {error}", "free some space, end what holds it, and look again")
        return
    text = found.problem or f"{found.rows:,} responses"
    text += f", {found.unsealed:,} of them without a checksum (from 0.1.0)" if found.unsealed else ""
    yield Finding("journal", not found.problem, f"{path}: {text}", REPAIR)


def _record(workspace: Workspace) -> Iterator[Finding]:
    wrong = {(source.name, key): str(error) for source, key, error in unreadable_files(workspace)}
    files = list(_files(workspace))
    whole = [one for one in files if (one[0].name, one[1]) not in wrong]
    old = sum(header is not None and not header.sealed for header in itertools.starmap(workspace.record.header, whole))
    text = "; ".join([f"{len(files)} files below {workspace.home.record}", *wrong.values()])
    text += f"; the footers of {old} of them, from 0.1.0, have no digest" if old else ""
    yield Finding("record", not wrong, text, REPAIR)


def unreadable_files(
    workspace: Workspace, before: Callable[[int], None] = lambda _: None
) -> Iterator[tuple[Table, RecordKey, EvalError]]:
    """The files of the record that are damaged, or that newer code wrote; `before` is told the bytes of each."""
    for source, key in _files(workspace):
        try:
            before(workspace.record.path(source, key).stat().st_size)
            workspace.record.verify(source, key)
        except EvalError as error:
            yield source, key, error


def _files(workspace: Workspace) -> Iterator[tuple[Table, RecordKey]]:
    for table in all_tables(further_tables()):
        for source in table.record_tables():
            for key in workspace.record.partitions(source):
                yield source, key


def _figures(workspace: Workspace) -> Iterator[Finding]:
    found = evaluations(workspace, Chosen())
    others = outdated(workspace, found)
    workspace.fingerprints.save()
    text = f"{len(others)} of {len(found)} evaluations were scored by other code or libraries than today's"
    told = "; `eval-pipeline rescore --dry-run` lists them" if others else ""
    yield Finding("figures", True, text + told)


def _store(workspace: Workspace) -> Iterator[Finding]:
    path = workspace.home.store
    if not path.exists():
        yield Finding("store", True, f"{path}: none yet; `eval-pipeline run` makes it")
        return
    problem = store_problem(workspace)
    yield Finding("store", not problem, problem or str(path), "run `eval-pipeline publish --full`")


def store_problem(workspace: Workspace) -> str:
    """What is wrong with the store; empty where nothing is."""
    try:
        run_query(workspace.home.store, "SELECT count(*) FROM turn_results")
    except EvalError as error:
        return str(error)
    path = workspace.home.store
    return "" if is_as_published(path) else f"{path} was changed since it was published, by another program"
