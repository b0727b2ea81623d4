"""The command `doctor`: checks the installation and says how to fix problems."""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from eval_pipeline.core import shown
from eval_pipeline.core.errors import EvalError, InputError, Problem, StoreError
from eval_pipeline.core.home import Home
from eval_pipeline.core.system.private import make_private
from eval_pipeline.operations.runs.rescoring import ChosenEvaluations, evaluations, outdated
from eval_pipeline.operations.upkeep.verifying import only_in_one, verified_files
from eval_pipeline.state.leases import PROCESSES
from eval_pipeline.state.place import state_place
from eval_pipeline.store.catalog.checking import catalog_problems, is_catalog
from eval_pipeline.store.published.compared import loss_text, open_losses, uncompared, uncompared_text
from eval_pipeline.store.published.memo import is_as_published
from eval_pipeline.store.published.query import run_query
from eval_pipeline.store.record import RecordKey
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.workspace.homes.kept import kept_bytes, most_bytes
from eval_pipeline.workspace.noting.commands import lag
from eval_pipeline.workspace.progress import SILENT, busy
from eval_pipeline.workspace.tabled.track_tables import further_tables
from eval_pipeline.workspace.workspace import Progress, Workspace

PACKAGES = ("dagster", "duckdb", "pyarrow", "openpyxl", "genai-prices")
LEAST_FREE = 1_000_000_000
INIT = "`eval-pipeline init FOLDER`"
_MOST_PROBLEMS = 3
REPAIR = "`eval-pipeline doctor --repair` restores what can be restored and lists the rest"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; `remedy` says what to do if it is not fine."""

    topic: str
    fine: bool
    text: str
    remedy: str = ""


def examine(home: Home, progress: Progress = SILENT) -> Iterator[Finding]:
    """Runs all checks and yields the findings; a check that fails does not prevent the next ones."""
    workspace = Workspace(home)
    looks: tuple[Callable[[Workspace], Iterator[Finding]], ...] = (
        _versions,
        _plugins,
        _disk,
        _kept,
        _suites,
        _model_versions,
        _providers,
        _python_sandbox,
        _servers,
        _cluster,
        _keys,
        _models,
        _bucket,
        _database,
        _journal,
        _record,
        _store,
    )
    known: dict[str, str] = {}
    for look in looks:
        topic = look.__name__.strip("_").replace("_", " ")
        try:
            with busy(progress, f"checking: {topic}"):
                findings = list(look(workspace))
            yield from findings
        except (EvalError, OSError) as error:
            first = known.setdefault(str(error), topic)
            told = str(error) if first == topic else f"not looked at, for what is said of {first}"
            yield Finding(
                topic, False, told, "correct the file that is named here" if first == topic else "correct that"
            )


def _versions(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline import __version__

    yield Finding("eval-pipeline", True, __version__)
    for name in PACKAGES:
        try:
            yield Finding(name, True, version(name))
        except PackageNotFoundError:
            yield Finding(name, False, "not installed", "install eval-pipeline again")


def _plugins(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline.operations.plugins import plugins_with_trouble

    for plugin, trouble in plugins_with_trouble():
        text = trouble or f"{plugin.place}, from {plugin.origin}"
        yield Finding(f"{plugin.group} {plugin.name}", trouble is None, text, "update or uninstall that package")


def _disk(workspace: Workspace) -> Iterator[Finding]:
    root = workspace.home.root
    make_private(root)
    free = shutil.disk_usage(root).free
    writable = os.access(root, os.W_OK)
    text = f"{root}: {shown.size(free)} free" + ("" if writable else ", not writable")
    yield Finding("disk", writable and free > LEAST_FREE, text, "free some space or set EVAL_HOME to another folder")


def _kept(workspace: Workspace) -> Iterator[Finding]:
    folder = workspace.home.expected
    if folder.is_dir():
        taken, most = shown.size(kept_bytes(folder)), shown.size(most_bytes())
        yield Finding("kept", True, f"{folder}: {taken} of results to use again, of at most {most}")


def _suites(workspace: Workspace) -> Iterator[Finding]:
    if not workspace.suites:
        places = " or ".join(map(str, workspace.home.suite_folders))
        yield Finding("suites", False, f"none in {places}", f"add one, or make a project: {INIT}")
    for source in workspace.suites.values():
        fine, text = False, ""
        try:
            found = read_suite(source)
            fine, text = not found.problems, f"{source.folder}: {shown.counted(len(found.cases), 'case', 'cases')}"
            text += "".join(f"; {note}" for note in found.notes)
            text += f"; other cases cannot be read: {_first(found.problems)}" if found.problems else ""
        except InputError as error:
            text = _first(error.problems)
        except EvalError as error:
            text = str(error)
        yield Finding(f"suite {source.name}", fine, text, "`eval-pipeline validate` lists every problem")


def _first(problems: Sequence[Problem]) -> str:
    more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}"


def _model_versions(workspace: Workspace) -> Iterator[Finding]:
    names = list(workspace.model_versions)
    files = workspace.home.model_version_files
    text = f"{len(names)}: {', '.join(names)}" if names else f"none in {workspace.home.model_version_places}"
    yield Finding("model versions", bool(names), text, f"add one to {files[0]}, or make a project: {INIT}")


def _providers(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline.providers.registry import all_traits

    for name, traits in all_traits().items():
        if traits.packages:  # providers without packages always work
            yield Finding(f"provider {name}", True, traits.lacks() or "can run here")


def _python_sandbox(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline.sandbox.diagnosis import diagnose
    from eval_pipeline.tracks.registry import lacks

    found = diagnose()
    text = "; ".join([found.title or "nothing on this machine can confine model-written code", *found.reasons])
    # Only tracks whose models write Python need a sandbox, and its extra brings one; a lower tier is sufficient, too.
    advice = f"; for a safer sandbox: {found.remedy}" if found.title and not found.best else ""
    fine = found.title is not None or lacks("pandas") is not None
    yield Finding("python sandbox", fine, text + advice, found.remedy)


def _servers(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline.sandbox.sql.live.diagnosis import diagnose_servers

    for found in diagnose_servers():
        yield Finding(f"engine {found.server}", found.fine, found.text, found.remedy)


def _cluster(workspace: Workspace) -> Iterator[Finding]:
    """Yields a finding for each worker of `EVAL_CLUSTER`; none without a cluster."""
    from eval_pipeline.workspace.shards.cluster import open_cluster
    from eval_pipeline.workspace.shards.workers import told, told_home

    opened = open_cluster()
    if opened is None:
        return
    with opened as cluster:
        for found in cluster.everywhere(partial(told, **told_home(workspace.home))):
            held = ", ".join(map(str, found["keys"]))
            text = f"process {found['pid']}, {found['sandbox'] or 'no sandbox'}" + (f"; has {held}" if held else "")
            text += "" if found["threads"] == 1 else f"; has {found['threads']} threads"
            remedy = "start it with --nthreads 1, without keys, where bubblewrap or Landlock works (docs/scale.md)"
            fit = bool(found["sandbox"]) and not held and found["threads"] == 1
            yield Finding(f"worker {found['host']}", fit, text, remedy)


def _keys(_: Workspace) -> Iterator[Finding]:
    from eval_pipeline.providers.registry import all_traits

    for name in dict.fromkeys(traits.key_variable for traits in all_traits().values() if traits.key_variable):
        yield Finding(f"key {name}", True, "set" if os.environ.get(name) else "not set")


def _models(workspace: Workspace) -> Iterator[Finding]:
    from eval_pipeline.operations.upkeep.model_lists import models_told

    for name, wrong in models_told(workspace):
        text = f"'{workspace.model_versions[name].model}' {wrong or 'can be asked'}"
        yield Finding(f"model of {name}", wrong is None, text, "correct the entry, or set `active: false`")


def _bucket(workspace: Workspace) -> Iterator[Finding]:
    if not workspace.place.is_shared:
        return
    place, remedy = workspace.home.place, "use a store whose conditional writes are atomic (docs/scale.md)"
    try:
        broken = workspace.place.broken()
    except StoreError as error:
        broken, remedy = f"it cannot be tried: {error}", "let its keys read, list, put and delete objects"
    yield Finding("bucket", broken is None, f"{place}: {broken or 'of several writers at once, one wins'}", remedy)


def _database(workspace: Workspace) -> Iterator[Finding]:
    state = state_place()
    leases = state.leases()
    if leases is None:
        return
    told = [
        f"process {name.removeprefix(PROCESSES)} was heard of {shown.duration(silent)} ago"
        for name, silent in sorted(leases.held(PROCESSES).items())
    ]
    text = f"{state.address}: " + ("; ".join(told) or "nobody is at work")
    text += f" (whoever is silent for {leases.life_s:g} s counts as gone)" if told else ""
    if workspace.home.journal.exists():
        text += (
            f"; the responses in {workspace.home.journal} are neither read nor copied beside it: "
            "what only they answer is asked, and paid for, again"
        )
    yield Finding("database", True, text)


def _journal(workspace: Workspace) -> Iterator[Finding]:
    state = state_place()
    path = state.address or workspace.home.journal
    try:
        found = state.checked_journal(workspace.home.journal)
    except StoreError as error:  # it could not be read, which does not prove damage
        advice = "free some disk space, end programs that use the file, and try again"
        yield Finding("journal", False, f"{path}: {error}", advice)
        return
    if found is None:
        yield Finding("journal", True, f"{path}: does not exist yet")
        return
    text = found.problem or f"{shown.counted(found.rows, 'response', 'responses')}"
    text += f", {found.unsealed:,} of them without a checksum (from 0.1.0)" if found.unsealed else ""
    yield Finding("journal", not found.problem, f"{path}: {text}", REPAIR)


def _record(workspace: Workspace) -> Iterator[Finding]:
    """Yields the findings on files and on figures, from one pass: each header is read once, in homes of any size."""
    files = old = changed = 0
    wrong = dict[tuple[str, RecordKey], str]()
    known = {RecordKey.of(partition): partition for partition in evaluations(workspace, ChosenEvaluations())}
    for key, one in itertools.groupby(verified_files(workspace, by_key=True), lambda found: found[1]):
        damaged = False
        for source, _, found in one:
            files += 1
            if isinstance(found, EvalError):
                wrong[source.name, key], damaged = str(found), True
            else:
                old += not found.sealed
        # What is damaged is made again by a repair, with the code of today.
        changed += key in known and not damaged and bool(outdated(workspace, [known[key]]))
    workspace.fingerprints.save()
    text = "; ".join([f"{shown.counted(files, 'file', 'files')} below {workspace.home.place}/record", *wrong.values()])
    text += f"; {old} of them were written by 0.1.0 and have no digest in their footers" if old else ""
    yield Finding("record", not wrong, text, REPAIR)
    text = f"{changed} of {len(known)} evaluations were scored by code or libraries that have changed since"
    yield Finding("figures", True, text + ("; `eval-pipeline rescore --dry-run` lists them" if changed else ""))


def _store(workspace: Workspace) -> Iterator[Finding]:
    path = workspace.home.store
    if not path.exists() and not workspace.place.is_shared:
        yield Finding("store", True, f"{path}: does not exist yet; `eval-pipeline run` creates it")
        return
    problem = store_problem(workspace)
    where = workspace.home.place if workspace.place.is_shared else str(path)
    yield Finding("store", not problem, problem or where, "run `eval-pipeline publish --full`")
    if not problem:
        for keys, what in zip(only_in_one(workspace), ("holds what is not", "lacks what is"), strict=True):
            places = [f"{key.suite} · {key.model_version} · {key.eval_date}" for key in keys]
            if places:
                yield Finding("store", False, f"it {what} on record: {_few(places)}", "run `eval-pipeline publish`")
    behind = lag(workspace.home) or ("" if problem else uncompared_text(uncompared(workspace.home.store)))
    if behind:
        yield Finding("store", False, behind, "run `eval-pipeline publish`; the next run does so, too")
    for row in [] if problem else open_losses(workspace.home.store):
        named = f"--suite {row['suite']} --model-version {row['model_version']}"
        yield Finding("loss", False, loss_text(row), f"look at it, or `eval-pipeline acknowledge {named} --why …`")


def store_problem(workspace: Workspace, before: Callable[[int], None] = lambda _: None) -> str:
    """Returns what is wrong with the store; empty if nothing is.

    Args:
        workspace: the workspace.
        before: receives the size of each part of a catalog before it is read.
    """
    if problems := list(workspace.place.store_problems(before)):
        return _few(problems)
    try:
        if not workspace.place.fresh_store().exists():
            return ""
    except EvalError as error:
        return str(error)
    if is_catalog(workspace.home.store) and (
        problems := list(catalog_problems(workspace.home.store, further_tables(), before))
    ):
        return _few(problems)
    try:
        run_query(workspace.home.store, "SELECT count(*) FROM turn_results")
    except EvalError as error:
        return str(error)
    path = workspace.home.store
    return "" if is_as_published(path) else f"{path} was changed since it was published, by another program"


def _few(problems: Sequence[str]) -> str:
    more = f"; and {len(problems) - _MOST_PROBLEMS} more" if len(problems) > _MOST_PROBLEMS else ""
    return "; ".join(problems[:_MOST_PROBLEMS]) + more
