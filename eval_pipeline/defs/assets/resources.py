"""What assets are handed: the workspace, and somebody to tell how far they are."""

from dataclasses import dataclass, field

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.workspace.workspace import Progress, Silent, Workspace


@dataclass
class EvaluationResource:
    """The resource of every asset; the command line puts in one that draws progress bars.

    Attributes:
        examples: by suite, stage and model version what was answered where the stage failed for it: for the terminal
            only.
    """

    workspace: Workspace = field(default_factory=lambda: Workspace(find_home()))
    progress: Progress = field(default_factory=Silent)
    examples: dict[tuple[str, str, str], str] = field(default_factory=dict)


@dg.definitions
def resources() -> dg.Definitions:
    """The resource under its name, with the executor for every job."""
    return dg.Definitions(resources={"evaluation": EvaluationResource()}, executor=dg.in_process_executor)
