"""The resource of all assets: workspace and progress."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.operations.runs.publication import Publication
from eval_pipeline.operations.runs.running import Finished
from eval_pipeline.workspace.noting.commands import Command
from eval_pipeline.workspace.workspace import Progress, Silent, Workspace


@dataclass
class EvaluationResource:
    """The resource of every asset; the command line passes one that draws progress bars.

    Attributes:
        finished: (suite, model version) → what went wrong, for a terminal; the model version is empty for stages of a
            whole suite.
    """

    workspace: Workspace = field(default_factory=lambda: Workspace(find_home()))
    progress: Progress = field(default_factory=Silent)
    finished: dict[tuple[str, str], Finished] = field(default_factory=dict)
    _of_runs: dict[str, Publication] = field(default_factory=dict)
    _made: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def wrong(self, suite: str, model_version: str, errors: Sequence[str], *, incomplete: bool) -> None:
        """Notes what went wrong with a stage; `incomplete` if what depends on it cannot be made."""
        if errors:
            found = self.finished.setdefault((suite, model_version), Finished(suite, model_version))
            found.errors += errors
            found.incomplete |= incomplete

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
    return dg.Definitions(resources={"evaluation": EvaluationResource()}, executor=dg.in_process_executor)
