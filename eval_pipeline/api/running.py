"""`ep.run` and `ep.compare`: the same as the commands `run` and `compare`, with tables instead of text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from eval_pipeline.analysis.comparisons.chosen.shown import comparisons_of, referenced
from eval_pipeline.api.drawing import evaluate_until
from eval_pipeline.api.evaluating import evaluate
from eval_pipeline.api.homes import Folder, at_home, outside_event_loops
from eval_pipeline.core.covering.cost_limit import CostLimit, command_limit
from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.days import today
from eval_pipeline.operations.runs.drawing import check_until
from eval_pipeline.operations.runs.headline import Headline, headline
from eval_pipeline.workspace.asked.planned import guard_scope
from eval_pipeline.workspace.asked.scope import Scope, suites_in_scope
from eval_pipeline.workspace.progress import SILENT
from eval_pipeline.workspace.runs import fresh_epoch
from eval_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

Names = str | Sequence[str] | None


@dataclass(frozen=True)
class Run:
    """The outcome of a run.

    Attributes:
        evaluations: `<suite>/<model version>/<date>` of each evaluation that has results; `ep.load` takes these names.
        problems: one sentence per problem or failed check.
        notes: remarks that are not errors.
        rows: the headline of each evaluation; `table()` has them as a DataFrame.
    """

    evaluations: tuple[str, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]

    @property
    def ok(self) -> bool:
        """Whether everything was evaluated and every check passed."""
        return not self.problems

    def table(self) -> "pd.DataFrame":
        """Returns a row for each evaluation: accuracy with its 95% interval, tokens and dollars."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(COLUMNS))


COLUMNS = (
    *("suite", "model_version", "eval_date", "simulated", "scope", "turns", "accuracy", "low", "high"),
    *("tokens_total", "usd_total", "tokens_per_success", "usd_per_success"),
)


def run(
    suite: Names,
    model_version: Names,
    *,
    home: Folder | None,
    data: Folder | None,
    part: tuple[int | None, int, Sequence[str], Sequence[str], bool],
    until: str | None,
    eval_date: date | str | None,
    fresh: bool,
    canary: bool,
    report: bool,
    max_cost: float | None,
) -> Run:
    """See `eval_pipeline.run`; `part` is sample size, seed, cases, tags and `failed`."""
    size, seed, cases, tags, failed = part
    scope = Scope(size, seed if size else 0, tuple(cases), tuple(tags), failed)
    asked = scope if until is None else (Until.parse(until), seed)
    limit = command_limit(max_cost)
    if until is not None and not scope.is_full:
        raise UsageError("`until` chooses among all cases; leave out sample_size, cases, tags and failed")

    def work() -> Run:
        with at_home(home, data) as found:
            return _run(Workspace(found), (suite, model_version), asked, eval_date, (fresh, canary, report), limit)

    return outside_event_loops(work)


def _run(
    workspace: Workspace,
    names: tuple[Names, Names],
    asked: Scope | tuple[Until, int],
    eval_date: date | str | None,
    ways: tuple[bool, bool, bool],
    limit: CostLimit | None,
) -> Run:
    fresh, canary, report = ways
    scope = asked if isinstance(asked, Scope) else Scope()
    suites = suites_in_scope(workspace, _suites(workspace, names[0]), scope)
    versions = _listed(names[1]) or [one.name for one in workspace.model_versions.values() if one.active]
    day = _day(eval_date)
    partitions = [Partition(suite, workspace.model_version(name).name, day) for name in versions for suite in suites]
    for found in partitions:
        if why := workspace.why_not(found.model_version, found.suite):
            raise UsageError(f"'{found.model_version}' cannot be evaluated on '{found.suite}': it {why}")
        if isinstance(asked, Scope):
            guard_scope(workspace, found, asked)
        else:
            check_until(workspace, found, asked[0])
    if not partitions:
        raise UsageError(f"nothing to run: there is no active model version in {workspace.home.model_version_places}")
    epoch = fresh_epoch() if fresh else ""
    if isinstance(asked, Scope):
        made = evaluate(workspace, partitions, asked, epoch, SILENT, report=report, canary=canary, cost_limit=limit)
    else:
        made = evaluate_until(
            workspace, partitions, asked, epoch, SILENT, report=report, canary=canary, cost_limit=limit
        )
    return Run(
        tuple(f"{found.suite}/{found.model_version}/{found.eval_date}" for found in made.done),
        tuple(made.problems),
        tuple(made.notes),
        tuple(_row(headline(workspace, found)) for found in made.done),
    )


def _row(found: Headline) -> dict[str, Any]:
    correct, place = found.overall["correct"], found.partition
    told = (place.suite, place.model_version, place.eval_date, found.simulated, found.scope)
    figures = (correct["n"], correct["mean"], correct["low"], correct["high"])
    costs = (found.cost[name] for name in COLUMNS[-4:])
    return dict(zip(COLUMNS, (*told, *figures, *costs), strict=True))


def compare(models: Sequence[str], suite: Names, *, home: Folder | None, data: Folder | None) -> "pd.DataFrame":
    """See `eval_pipeline.compare`."""
    import pandas as pd

    if len(set(models)) < 2:
        raise UsageError("name two or more different model versions or evaluations to compare")
    with at_home(home, data) as place:
        workspace = Workspace(place)
        found = comparisons_of(workspace, referenced(workspace, _suites(workspace, suite), models), models)
    return pd.DataFrame([{"suite": name, **row} for name, rows in found.items() for row in rows])


def _suites(workspace: Workspace, names: Names) -> list[str]:
    if not workspace.suites:
        places = " or ".join(map(str, workspace.home.suite_folders))
        raise UsageError(f"there is no suite in {places}")
    return [workspace.suite(name).name for name in _listed(names)] or list(workspace.suites)


def _listed(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(dict.fromkeys(names or ()))


def _day(found: date | str | None) -> date:
    try:
        return date.fromisoformat(found) if isinstance(found, str) else found or today()
    except ValueError as error:
        raise UsageError(f"'{found}' is not a date; expected YYYY-MM-DD") from error
