"""The resource of all assets: workspace and progress."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.operations.runs.publication import Publication
from eval_pipeline.operations.runs.running import Finished
from eval_pipeline.workspace.noting.commands import Command
from eval_pipeline.workspace.watching.running import forget_superseded
from eval_pipeline.workspace.watching.status import FAILED, STOPPED
from eval_pipeline.workspace.watching.watch import Watch, watch_of
from eval_pipeline.workspace.workspace import Progress, Silent, Workspace


@dataclass
class EvaluationResource:
    """The resource of every asset; the command line passes one that draws progress bars.

    Attributes:
        finished: (suite, model version) → what went wrong, for a terminal; the model version is empty for stages of a
            whole suite.
        canceled: whether something ended the run.
    """

    workspace: Workspace = field(default_factory=lambda: Workspace(find_home()))
    progress: Progress = field(default_factory=Silent)
    finished: dict[tuple[str, str], Finished] = field(default_factory=dict)
    canceled: bool = False
    _watch: Watch | None = None
    _of_runs: dict[str, Publication] = field(default_factory=dict)
    _made: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def wrong(self, suite: str, model_version: str, errors: Sequence[str], *, incomplete: bool) -> None:
        """Notes what went wrong with a stage; `incomplete` if what depends on it cannot be made."""
        if errors:
            found = self.finished.setdefault((suite, model_version), Finished(suite, model_version))
            found.errors += errors
            found.incomplete |= incomplete
            if self._watch is not None:
                self._watch.status.problems += errors

    @cached_property
    def resource(self) -> dg.ResourceDefinition:
        """What Dagster opens when a run begins and closes when it ends, however it does: what is said of it then."""

        def opened(_: dg.InitResourceContext) -> Iterator[EvaluationResource]:
            try:
                yield self
            finally:
                if self._watch is not None:
                    self._watch.end(STOPPED if self.canceled else FAILED if self._watch.status.problems else "")
                self._watch, self.canceled = None, False

        return dg.ResourceDefinition(opened)

    def watch(self, run_id: str, evaluations: int, asked: Mapping[str, Any]) -> Watch:
        """Returns the watch of a run, of which a step is asked for this."""
        if self._watch is None:
            self._watch = watch_of(self.workspace.home, "dagster", run_id)
            self._watch.status.evaluations = evaluations
        status = self._watch.status
        known = status.request.get("partitions", [])
        if new := [place for place in asked.get("partitions", ()) if place not in known]:
            status.request = {**asked, "partitions": [*known, *new]}
            forget_superseded(self.workspace.home, status)
        return self._watch

    def publication_of(self, run_id: str) -> Publication:
        """Returns what the evaluations of a Dagster run are published by."""
        if run_id not in self._of_runs:
            self._of_runs.clear()  # earlier runs of this process have ended
            self._of_runs[run_id] = Publication(self.workspace, Command(self.workspace.home, "dagster"))
        return self._of_runs[run_id]

    def begins(self, run_id: str, suite: str) -> bool:
        """Whether a run comes to the first stage of a suite's evaluation."""
        for of in [of for of in self._made if of[0] != run_id]:
            del self._made[of]  # earlier runs of this process have ended
        first = (run_id, suite) not in self._made
        self._made.setdefault((run_id, suite), set())
        return first

    def completes(self, run_id: str, suite: str, stage: str, planned: Collection[str]) -> bool:
        """Notes that a stage of a suite's evaluation has succeeded; returns whether it is the last one planned."""
        made = self._made[run_id, suite]
        made.add(stage)
        return made >= set(planned)


@dg.definitions
def resources() -> dg.Definitions:
    """Returns the resource under its name, and the executor for every job."""
    return dg.Definitions(resources={"evaluation": EvaluationResource().resource}, executor=dg.in_process_executor)
