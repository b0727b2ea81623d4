"""The resource of all assets: workspace and progress."""

from dataclasses import dataclass, field

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.workspace.workspace import Progress, Silent, Workspace


@dataclass
class EvaluationResource:
    """The resource of every asset; the command line passes one that draws progress bars.

    Attributes:
        examples: (suite, stage, model version) → excerpt of an answer on which the stage failed; shown on a terminal
            only.
    """

    workspace: Workspace = field(default_factory=lambda: Workspace(find_home()))
    progress: Progress = field(default_factory=Silent)
    examples: dict[tuple[str, str, str], str] = field(default_factory=dict)


@dg.definitions
def resources() -> dg.Definitions:
    """Returns the resource under its name, and the executor for every job."""
    return dg.Definitions(resources={"evaluation": EvaluationResource()}, executor=dg.in_process_executor)
