"""What a run may spend on its model and on the suite's judge, and what it therefore did not ask."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from eval_pipeline.core.covering.cost_limit import CostLimit
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import CallErrorKind, Json, Partition
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.shown import dollars
from eval_pipeline.judge.judgement import DEFAULT_JUDGE
from eval_pipeline.state.place import state_place
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.tables import GENERATIONS, JUDGEMENTS, RECOVERY_ATTEMPTS, RUNS
from eval_pipeline.tracks.capabilities import Judged
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import COMPLETE, INCOMPLETE, record_run, run_rows
from eval_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    from eval_pipeline.asking.budgets import Budget
    from eval_pipeline.asking.spending.purse import Purse

OF_VERSION = "model version"
"""Kind of the limit that a model version's entry sets on each run."""
REFUSED = "refused"
"""Key in a record file's header: number of calls refused by the budget that would have added rows to the file."""
_MODEL = ("tokens_spent", "usd_spent", "calls_refused")
_JUDGE = ("judge_tokens_spent", "judge_usd_spent", "judge_calls_refused")
"""Columns of `runs` with what was spent on the model and on the judge, and the calls that were refused."""


def budget_of(inputs: Inputs) -> "Budget":
    """Returns the budget of a model version's run, reduced by what its earlier steps have spent on all suites.

    It must be closed.
    """
    return _budget(inputs, inputs.version, _MODEL, closed=not inputs.run.asks)


def judge_budget(inputs: Inputs, judge: ModelVersion) -> "Budget":
    """Returns the judge's budget in a run, reduced by what the run has spent on this judge in all suites.

    As for models, a run is that of one model version. It must be closed.
    """
    return _budget(inputs, judge, _JUDGE)


def open_purse(inputs: Inputs, version: ModelVersion) -> "Purse | None":
    """Opens what an evaluation holds of the limit of its command or night to spend on a model version.

    Returns:
        None without a limit, and for model versions that cost nothing.

    Raises:
        UsageError: it is an application that tells nothing of what it spends.
        StoreError: the ledger cannot be opened.
    """
    from eval_pipeline.providers.prices import has_price
    from eval_pipeline.providers.registry import check_settings, traits_of

    limit = inputs.run.cost_limit
    if limit is None or not ((traits := traits_of(version.provider)).charged or has_price(version)):
        return None
    if traits.own_prompt:
        check_settings(version.model_copy(update={"max_cost_usd": limit.usd}))
    from eval_pipeline.asking.spending.purse import Purse

    home, state = inputs.workspace.home.root, state_place()
    bar = _Bar(inputs, limit, state.spent_under(home, limit.account).usd)
    return Purse(state.ledger(home), limit, _purpose(inputs), bar)


def limit_reached(inputs: Inputs) -> str:
    """Returns that the limit of its command or night is reached if it refused calls of the evaluation; else nothing."""
    limit = inputs.run.cost_limit
    if limit is None:
        return ""
    spent = state_place().spent_under(inputs.workspace.home.root, limit.account)
    return limit.reached_text(spent.usd) if _purpose(inputs) in spent.refused else ""


def limit_told(inputs: Inputs, version: ModelVersion) -> dict[str, Any]:
    """Returns what those who watch a run are told of the limit on what it spends; nothing without one."""
    if (limit := inputs.run.cost_limit) is not None:
        return {"limit_usd": limit.usd, "limit_kind": limit.kind}
    return {} if version.max_cost_usd is None else {"limit_usd": version.max_cost_usd, "limit_kind": OF_VERSION}


def limit_facts(inputs: Inputs) -> dict[str, Json]:
    """Returns what a stage tells of the limit of its command or night: what is spent or reserved of how much."""
    limit = inputs.run.cost_limit
    if limit is None:
        return {}
    spent = state_place().spent_under(inputs.workspace.home.root, limit.account)
    return {"limit_usd": limit.usd, "limit_spent_usd": spent.usd}


def judge_version(workspace: Workspace, suite: str) -> ModelVersion:
    """Returns the judge of a suite: the model version that its options name, or by default a Claude model.

    Raises:
        UsageError: there is no such model version.
    """
    track = workspace.track(suite)
    option = track.judge_option if isinstance(track, Judged) else Judged.judge_option
    name: Json = dict(workspace.suite(suite).require().options)
    for part in option.split("."):
        name = name.get(part) if isinstance(name, Mapping) else None
    if name is None:
        return DEFAULT_JUDGE
    try:
        return workspace.model_version(str(name))
    except UsageError as error:
        raise UsageError(f"suite '{suite}', options.{option}: {error}") from error


def record_judge_spending(inputs: Inputs, budget: "Budget", refused: int) -> None:
    """Adds what the judge has spent to the run's row in `runs`; rescoring has no such row, and nothing is recorded.

    Args:
        inputs: of the evaluation.
        budget: the judge's, with what this stage has spent.
        refused: calls that it did not allow.
    """
    row = next(iter(_rows(inputs, inputs.suite, _JUDGE)), None)
    if row is None or not (budget.tokens or budget.usd or refused):
        return
    tokens, usd, before = (row[name] for name in _JUDGE)
    told = ((tokens or 0) + budget.tokens, usd if budget.usd is None else (usd or 0.0) + budget.usd)
    changes: dict[str, Any] = dict(zip(_JUDGE, (*told, (before or 0) + refused), strict=True))
    record_run(inputs.workspace, inputs.place, inputs.run.run_id, None, **changes)


def turns_not_asked(inputs: Inputs) -> set[tuple[str, int]]:
    """Returns (turn id, sample) of the first attempts that the budget refused."""
    rows = inputs.read(GENERATIONS, ["turn_id", "sample", "call_error"])
    refused = rows.filter(pc.equal(rows["call_error"], CallErrorKind.BUDGET.value))
    return {(row["turn_id"], row["sample"]) for row in refused.to_pylist()}


def recoveries_refused(inputs: Inputs) -> int:
    """Returns the number of turns whose recovery the budget cut short."""
    header = inputs.header(RECOVERY_ATTEMPTS)
    return int(header.made_from.get(REFUSED, "0")) if header else 0


def not_judged(inputs: Inputs) -> int:
    """Returns the number of answers that were not judged because the judge's budget was reached."""
    if not isinstance(inputs.track, Judged) or inputs.header(JUDGEMENTS) is None:
        return 0
    from eval_pipeline.judge.judgement import OVER_BUDGET

    return int(pc.sum(pc.equal(inputs.read(JUDGEMENTS, ["reason"])["reason"], OVER_BUDGET)).as_py() or 0)


def ended_as(inputs: Inputs) -> str:
    """Returns the status of a run that ended normally: `incomplete` if a budget refused a call to model or judge."""
    refused = recoveries_refused(inputs) or turns_not_asked(inputs) or not_judged(inputs)
    return INCOMPLETE if refused else COMPLETE


def _budget(inputs: Inputs, version: ModelVersion, columns: Sequence[str], *, closed: bool = False) -> "Budget":
    """Returns a budget, reduced by what stands in these columns of the run, so that steps in any process share it."""
    from eval_pipeline.asking.answers import utc_today
    from eval_pipeline.asking.budgets import Amount, Budget
    from eval_pipeline.asking.permits import Permits

    limited = version.max_cost_usd is not None or version.max_tokens_total is not None
    rows = _rows_of_run(inputs, version, columns) if limited else []
    tokens, dollars, refused = ([row[name] for row in rows if row[name] is not None] for name in columns)
    before = Amount(sum(tokens), sum(dollars) if dollars else None)
    permits = None if inputs.lease is None else Permits(inputs.lease)
    purse = None if closed else open_purse(inputs, version)
    return Budget(
        version, before, reached=sum(refused) > 0, closed=closed, permits=permits, purse=purse, today=utc_today
    )


def _rows_of_run(inputs: Inputs, version: ModelVersion, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the rows of the run in the `runs` of all suites; of a judge, in those that it judges."""
    found: list[dict[str, Any]] = []
    within = RecordKey(None, inputs.place.model_version, inputs.place.eval_date)
    for key in inputs.record.partitions(RUNS, within):
        rows = _rows(inputs, str(key.suite), columns)
        if rows and (columns is _MODEL or judge_version(inputs.workspace, str(key.suite)).name == version.name):
            found += rows
    return found


def _rows(inputs: Inputs, suite: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the rows of the run in the `runs` of a suite."""
    place = Partition(suite, inputs.place.model_version, inputs.place.eval_date)
    rows = run_rows(inputs.workspace, place, ["run_id", *columns])
    return [row for row in rows if row["run_id"] == inputs.run.run_id]


class _Bar:
    """A progress bar of the cents that are spent of a limit."""

    def __init__(self, inputs: Inputs, limit: CostLimit, usd: float) -> None:
        self._progress, self._label = inputs.progress, inputs.label(f"cents spent of {dollars(limit.usd)}")
        self._usd, self._shown, self._watch = 0.0, 0, inputs.run.watch
        self._progress.start(self._label, ceil(100 * limit.usd))
        self.add(usd)

    def add(self, usd: float) -> None:
        """Adds what a call cost."""
        self._usd += usd
        if self._watch is not None:
            self._watch.status.limit_spent = self._usd
        self._progress.advance(self._label, int(100 * self._usd) - self._shown)
        self._shown = int(100 * self._usd)

    def close(self) -> None:
        """Removes the bar."""
        self._progress.finish(self._label)


def _purpose(inputs: Inputs) -> str:
    place = inputs.place
    return f"{place.suite} · {place.model_version} · {place.eval_date}"
