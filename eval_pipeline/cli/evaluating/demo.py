"""The command `demo`: evaluates two simulated model versions fully, and a real small model on part of the suites."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from typing import IO, TYPE_CHECKING, Annotated, NoReturn

import typer

from eval_pipeline.cli.evaluating.running import evaluate
from eval_pipeline.cli.options import Paths, no_suite, open_workspace
from eval_pipeline.cli.saying import say
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.system.days import today
from eval_pipeline.core.system.supervision import SUPERVISOR, own_identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eval_pipeline.core.model import Partition
    from eval_pipeline.workspace.workspace import Workspace


SIMULATED = ("simulated-strong", "simulated-weak")
LOCAL = "smollm2-135m"
SLICE = 1
"""How many conversations of each suite the local model answers; it takes up to a minute on one thread."""
TASKS = {
    "agents_sample": (
        "shop_top_customer",
        "energy_clean",
        "bikes_mend_daily",
        "ledger_entered_twice",
        "energy_pools_bill",
        "shop_margin",
    )
}
"""Tasks of a suite that stand for all: one in each world, one with a user, one that cannot be answered."""
BEYOND_LOCAL = ("agent", "pandas", "sdmx", "sql")
"""Tracks that ask for more than the local model can write: it repeats itself until it may not write more."""


def demo(part: Annotated[str | None, typer.Option(hidden=True)] = None, paths: Paths = False) -> None:
    """Evaluates three model versions on the sample suites: two simulated ones, and a small real one on a few cases."""
    from eval_pipeline.cli.terminal import ProgressBars, note
    from eval_pipeline.core.system.processors import processors
    from eval_pipeline.core.system.supervision import end_with_supervisor
    from eval_pipeline.workspace.progress import busy

    workspace = open_workspace()
    if part is not None:
        end_with_supervisor()
        say(written(_evaluated(workspace, ProcessPart(**json.loads(part)))))
        raise typer.Exit
    suites = _own_suites(workspace)
    if why_not := _why_not_local(workspace):
        note(f"{LOCAL} is left out: {why_not}")
    day, local = today(), not why_not
    # Much of the time one thread works, or a single answer is waited for: two processes share the suites.
    first, second = halves(suites) if processors() > 1 else (list(suites), [])
    with beside(ProcessPart(second, day.isoformat(), local), str(workspace.home.root)) as rest:
        own = _evaluated(workspace, ProcessPart(first, day.isoformat(), local), lines=True)
        with ProgressBars(lines=bool(second)) as progress, busy(progress, f"waiting for {', '.join(second)}"):
            other = rest()
    for line in other.said:
        note(line)
    _show(workspace, day, [own, other], paths=paths)


def _show(workspace: "Workspace", day: date, outcomes: "Sequence[Outcome]", *, paths: bool) -> NoReturn:
    """Shows what came of all parts, in the order of the suites, and ends the command."""
    from eval_pipeline.cli.evaluating.outcome import show
    from eval_pipeline.core.model import Partition
    from eval_pipeline.operations.runs.headline import headline

    done = {place for outcome in outcomes for place in outcome.done}
    order = [(suite, version) for suite in workspace.suites for version in (*SIMULATED, LOCAL)]
    problems = [problem for outcome in outcomes for problem in outcome.problems]
    found = [
        headline(workspace, Partition(suite, version, day)) for suite, version in order if (suite, version) in done
    ]
    show(workspace, found, problems, paths=paths)
    raise typer.Exit(1 if problems else 0)


def _own_suites(workspace: "Workspace") -> dict[str, int]:
    """Returns the suites of the project, which imported ones are not, with the bytes of their files."""
    own = workspace.home.data / "suites"
    suites = [(name, source.folder) for name, source in workspace.suites.items() if source.folder.parent == own]
    if not suites:
        raise UsageError(no_suite([own]))
    return {name: sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) for name, folder in suites}


def _evaluated(workspace: "Workspace", part: "ProcessPart", *, lines: bool = False) -> "Outcome":
    """Evaluates the suites of a part with all model versions; `lines` as for `evaluate`."""
    from eval_pipeline.cli.terminal import note
    from eval_pipeline.core.model import Partition
    from eval_pipeline.defs.running.launch import launch
    from eval_pipeline.operations.upkeep.keeping import evaluation_is_current
    from eval_pipeline.workspace.asked.scope import Scope
    from eval_pipeline.workspace.inputs import Inputs

    day = date.fromisoformat(part.day)
    wanted = [(Partition(suite, name, day), TASKS.get(suite, ())) for name in SIMULATED for suite in part.suites]
    asked: dict[Scope, list[Partition]] = {}
    for partition, tasks in wanted:
        is_full = not tasks or _is_full(workspace, partition)
        asked.setdefault(Scope() if is_full else Scope(cases=tasks), []).append(partition)
    for suite in part.suites if part.local else ():
        if (track := workspace.track(suite).name) in BEYOND_LOCAL:
            note(f"{LOCAL} is left out for {suite}: answers of the track {track} are beyond it")
            continue
        partition, scope = Partition(suite, LOCAL, day), Scope(sample_size=SLICE)
        if _is_full(workspace, partition):
            # It is only shown if it is current, since making it again would take hours.
            scope = Scope()
            if not evaluation_is_current(Inputs.of(workspace, partition)):
                note(f"{LOCAL} is left out for {suite}: today's full evaluation is out of date; `run` makes it anew")
                continue
        asked.setdefault(scope, []).append(partition)
    problems, done = list[str](), list[Partition]()
    for scope, partitions in asked.items():
        wrong, made = evaluate(workspace, partitions, scope, "", report=True, launcher=launch, lines=lines)
        problems, done = problems + wrong, done + made
    return Outcome(problems, [(partition.suite, partition.model_version) for partition in done])


def _is_full(workspace: "Workspace", partition: "Partition") -> bool:
    """Returns whether today's evaluation is a full one, which a part must not replace."""
    from eval_pipeline.workspace.asked.planned import guard_scope
    from eval_pipeline.workspace.asked.scope import Scope

    try:
        guard_scope(workspace, partition, Scope(sample_size=SLICE))
    except UsageError:
        return True
    return False


def _why_not_local(workspace: "Workspace") -> str | None:
    """Returns why the local model cannot answer on this machine, or None if it can."""
    from eval_pipeline.providers.registry import traits_of

    if LOCAL not in workspace.model_versions:
        return f"it is not in {workspace.home.model_version_places}"
    return traits_of(workspace.model_version(LOCAL).provider).lacks() or None


START = "import sys; sys.argv[0] = 'eval-pipeline'; from eval_pipeline.cli import main; main()"
"""What Python runs with `-c` as the command line."""
_STOP_S = 30.0


@dataclass(frozen=True, slots=True)
class ProcessPart:
    """What one process evaluates.

    Attributes:
        suites: names of the suites.
        day: evaluation date, in ISO form: a demo may go on after midnight.
        local: whether the local model is asked, too.
    """

    suites: Sequence[str]
    day: str
    local: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a part.

    Attributes:
        problems: one sentence per problem.
        done: suite and model version of each evaluation in the record.
        said: lines that the other process wrote meanwhile.
    """

    problems: Sequence[str]
    done: Sequence[tuple[str, str]]
    said: Sequence[str] = ()


def halves(sizes: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Deals names out to two parts, the largest first, each in the order given; the second may be empty.

    Sizes only tell the order: what a model's answers and the reports of a suite take hardly depends on them.
    """
    largest_first = sorted(sizes, key=lambda name: -sizes[name])
    order = list(sizes).index
    return sorted(largest_first[::2], key=order), sorted(largest_first[1::2], key=order)


def written(outcome: Outcome) -> str:
    """Returns what the process of a part writes for the one that started it."""
    return json.dumps({"problems": list(outcome.problems), "done": list(outcome.done)})


@contextmanager
def beside(part: ProcessPart, home: str) -> Iterator[Callable[[], Outcome]]:
    """Starts the process of a part; yields a function that waits for it. It never outlives the block or this process.

    What it writes to standard error is kept until then, so that it does not mix with this process's progress bars.
    """
    if not part.suites:
        yield lambda: Outcome([], [])
        return
    # The script `eval-pipeline` does not look for modules in the current folder, so its child must not either.
    here = [] if sys.path[0] in {"", os.getcwd()} else ["-P"]
    command = [sys.executable, *here, "-c", START, "demo", "--part", json.dumps(asdict(part))]
    environment = {**os.environ, SUPERVISOR: own_identity(home)}
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
        # Ctrl-C reaches all processes of a session. In one of its own this process gets one signal, and not two.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=told, stderr=said, env=environment, start_new_session=True
        )
        try:
            yield lambda: _outcome(part, process.wait(), told, said)
        finally:
            _end(process)


def _outcome(part: ProcessPart, code: int, told: IO[bytes], said: IO[bytes]) -> Outcome:
    lines = _text(said).splitlines()
    try:
        if code == 0:
            found = json.loads(_text(told))
            return Outcome(found["problems"], [(suite, version) for suite, version in found["done"]], lines)
    except (ValueError, KeyError):
        pass
    ended = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
    why = lines[-1].removeprefix("error: ") if lines else "it said nothing"
    return Outcome([f"{', '.join(part.suites)}: their process ended with {ended}: {why}"], [], lines[:-1])


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends the process, by force if necessary; the answers it had are kept."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
