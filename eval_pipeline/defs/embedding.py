"""A suite as a component of a larger Dagster project.

type: eval_pipeline.defs.embedding.EvalSuite
attributes:
  suite: finqa_sample
"""

from functools import cache

import dagster as dg

from eval_pipeline.core.home import Home, find_home
from eval_pipeline.defs.assets.resources import EvaluationResource
from eval_pipeline.defs.assets.suite_assets import suite_definitions
from eval_pipeline.defs.automation.jobs import suite_job_name
from eval_pipeline.defs.automation.sensors import registering
from eval_pipeline.workspace.workspace import Workspace


class EvalSuite(dg.Component, dg.Model, dg.Resolvable):
    """The assets, checks and job of one suite, and the sensor that registers model versions.

    Attributes:
        suite: its name. Home and data folder come from `EVAL_HOME` and `EVAL_DATA`, as for the command line.
    """

    suite: str

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Returns the definitions for the project. Raises UsageError with the known names if there is no such suite."""
        evaluation = _evaluation(find_home())
        source = evaluation.workspace.suite(self.suite)
        job = dg.define_asset_job(
            suite_job_name(source.name),
            dg.AssetSelection.groups(source.name),
            # All steps of an evaluation run in one process, whatever the project's executor.
            executor_def=dg.in_process_executor,
            description=f"The suite {source.name}, for one model version.",
        )
        # Named after the suite, because sensor names must be unique within a project.
        sensor = registering(f"register_model_versions_{source.name}")
        own = dg.Definitions(jobs=[job], sensors=[sensor], resources={"evaluation": evaluation.resource})
        return dg.Definitions.merge(own, suite_definitions(source, evaluation.workspace))


@cache
def _evaluation(home: Home) -> EvaluationResource:
    """Returns one resource for all suites of a project.

    Dagster accepts a repeated resource only if it is the same object.
    """
    return EvaluationResource(Workspace(home))
