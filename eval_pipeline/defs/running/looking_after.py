"""What `eval-pipeline dev` looks after while it serves: runs and commands that ended, and what they left undone."""

import logging

import dagster as dg

from eval_pipeline.core.home import Home
from eval_pipeline.defs.running.history.withdrawing import count_anew, withdraw
from eval_pipeline.defs.running.instance import sweep_home
from eval_pipeline.defs.running.removing import forget
from eval_pipeline.defs.running.told.telling import OF_DEV, tell
from eval_pipeline.operations.upkeep.completing import compare_what_is_new, complete_left
from eval_pipeline.store.published.memo import store_status
from eval_pipeline.workspace.workspace import Workspace

_MOST_RUNS = 200
"""Failed runs that are looked at, the newest."""

_log = logging.getLogger(__name__)


class LookingAfter:
    """Looks after one home, again and again."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._failed = set[str]()
        self._withdrawn = set[dg.AssetKey]()
        self._store: tuple[int, int] | None = None

    def look(self, instance: dg.DagsterInstance) -> None:
        """Ends runs of dead processes, which would block the queue, completes what they left, and tells of commands."""
        try:
            sweep_home(self._home, instance)
            self._withdraw(instance)
            for problem in [*complete_left(Workspace(self._home), name=OF_DEV, forget=forget), *self._compare()]:
                _log.warning("%s", problem)
            tell(self._home)
        except Exception as error:  # e.g. a busy database or a full disk: try again later
            _log.warning("cannot look for what commands and runs have left (%s)", error)

    def _withdraw(self, instance: dg.DagsterInstance) -> None:
        """Withdraws the plans of runs that have failed since the last look.

        Who counted partitions at that moment may have kept a count with the plans, so they are counted anew once more.
        """
        count_anew(instance, self._withdrawn)
        self._withdrawn.clear()
        failed = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]), limit=_MOST_RUNS)
        for run in failed:
            if run.run_id not in self._failed:
                self._withdrawn.update(withdraw(instance, run.run_id))
                self._failed.add(run.run_id)

    def _compare(self) -> list[str]:
        """Compares what is new in the store, if it has changed since the last look; returns a sentence a problem."""
        found = store_status(self._home.store)
        if found is None or found == self._store:
            return []
        problems = compare_what_is_new(Workspace(self._home), name=OF_DEV)
        self._store = found  # what was published meanwhile is looked at again
        return problems
