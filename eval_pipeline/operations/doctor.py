"""`doctor`: whether this installation can do what it should, and what to do where it cannot."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.home import Home
from eval_pipeline.operations.rescoring import Chosen, evaluations, outdated
from eval_pipeline.store.query import run_query
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.schemas import Table
from eval_pipeline.store.tables import all_tables
from eval_pipeline.workspace.progress import SILENT, busy
from eval_pipeline.workspace.track_tables import further_tables
from eval_pipeline.workspace.workspace import Progress, Workspace

PACKAGES = ("dagster", "duckdb", "pyarrow", "openpyxl", "genai-prices", "openai", "xllamacpp")
LEAST_FREE = 1_000_000_000


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
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    writable = os.access(root, os.W_OK)
    text = f"{root}: {free / 1e9:.1f} GB free" + ("" if writable else ", not writable")
    yield Finding("disk", writable and free > LEAST_FREE, text, "free some space or set EVAL_HOME to another folder")


def _suites(workspace: Workspace) -> Iterator[Finding]:
    for source in workspace.suites.values():
        text = str(source.folder) if source.header else "; ".join(str(problem) for problem in source.problems)
        yield Finding(f"suite {source.name}", source.header is not None, text, "mend suite.yaml")


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
    remedy = f"move {path} away: what is recorded stays, only the journalled responses are asked for again"
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            said = connection.execute("PRAGMA quick_check").fetchone()[0]
        yield Finding("journal", said == "ok", f"{path}: {said}", remedy)
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.OperationalError):  # it could not be read, which says nothing of what is in it
            remedy = "free some space, end what holds it, and look again"
        yield Finding("journal", False, f"{path}: {error}", remedy)


def _record(workspace: Workspace) -> Iterator[Finding]:
    files, wrong = 0, []
    for table in all_tables(further_tables()):
        for source in table.record_tables():
            for key in workspace.record.partitions(source):
                files += 1
                wrong += _problem(workspace, source, key)
    text = f"{files} files below {workspace.home.record}" + "".join(f"; {sentence}" for sentence in wrong)
    yield Finding("record", not wrong, text, "remove the files named; the next run makes them again")


def _problem(workspace: Workspace, table: Table, key: RecordKey) -> list[str]:
    try:
        workspace.record.verify(table, key)
    except EvalError as error:
        return [str(error)]
    return []


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
    try:
        run_query(path, "SELECT count(*) FROM turn_results")
        yield Finding("store", True, str(path))
    except EvalError as error:
        yield Finding("store", False, str(error), "run `eval-pipeline publish --full`")
