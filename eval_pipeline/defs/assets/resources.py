"""The resource of all assets: workspace and progress."""

from collections.abc import Collection
from dataclasses import dataclass, field

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.operations.publication import Publication
from eval_pipeline.workspace.workspace import Progress, Silent, Workspace


@dataclass
class EvaluationResource:
    """The resource of every asset; the command line passes one that draws progress bars.

    Attributes:
        examples: (suite, stage, model version) → excerpt of an answer on which the stage failed; shown on a terminal
            only.
        publication: publishes the evaluations of all Dagster runs of a command; None if each run publishes its own.
    """

    workspace: Workspace = field(default_factory=lambda: Workspace(find_home()))
    progress: Progress = field(default_factory=Silent)
    examples: dict[tuple[str, str, str], str] = field(default_factory=dict)
    publication: Publication | None = None
    _of_runs: dict[str, Publication] = field(default_factory=dict)
    _made: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def publication_of(self, run_id: str) -> Publication:
        """Returns what the evaluations of a Dagster run are published by."""
        if self.publication is not None:
            return self.publication
        if run_id not in self._of_runs:
            self._of_runs.clear()  # earlier runs of this process have ended
            self._of_runs[run_id] = Publication(self.workspace)
        return self._of_runs[run_id]

    def completes(self, run_id: str, suite: str, stage: str, planned: Collection[str]) -> bool:
        """Notes that a stage of a suite's evaluation has succeeded; returns whether it is the last one planned."""
        for of in [of for of in self._made if of[0] != run_id]:
            del self._made[of]  # earlier runs of this process have ended
        made = self._made.setdefault((run_id, suite), set())
        made.add(stage)
        return made >= set(planned)


@dg.definitions
def resources() -> dg.Definitions:
    """Returns the resource under its name, and the executor for every job."""
    return dg.Definitions(resources={"evaluation": EvaluationResource()}, executor=dg.in_process_executor)
