"""The resource of all assets: workspace and progress."""

from dataclasses import dataclass, field

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.operations.publication import Publication
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Progress, Silent, Workspace


@dataclass
class EvaluationResource:
    """The resource of every asset; the command line passes one that draws progress bars.

    Attributes:
        examples: (suite, stage, model version) → excerpt of an answer on which the stage failed; shown on a terminal
            only.
        publication: publishes the evaluations of all Dagster runs of a command; None if each run publishes its own.
        made: (run id, suite) → stages of an evaluation that have succeeded, and their inputs.
    """

    workspace: Workspace = field(default_factory=lambda: Workspace(find_home()))
    progress: Progress = field(default_factory=Silent)
    examples: dict[tuple[str, str, str], str] = field(default_factory=dict)
    publication: Publication | None = None
    made: dict[tuple[str, str], dict[str, Inputs]] = field(default_factory=dict)
    _of_runs: dict[str, Publication] = field(default_factory=dict)

    def publication_of(self, run_id: str) -> Publication:
        """Returns what the evaluations of a Dagster run are published by."""
        if self.publication is not None:
            return self.publication
        if run_id not in self._of_runs:
            self._of_runs.clear()  # earlier runs of this process have ended
            self._of_runs[run_id] = Publication(self.workspace)
        return self._of_runs[run_id]


@dg.definitions
def resources() -> dg.Definitions:
    """Returns the resource under its name, and the executor for every job."""
    return dg.Definitions(resources={"evaluation": EvaluationResource()}, executor=dg.in_process_executor)
