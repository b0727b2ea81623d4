"""Dagster jobs: one for each suite, one for all suites."""

import dagster as dg

from eval_pipeline.chain.evaluation import COMPARING, INGESTING
from eval_pipeline.core.home import find_home
from eval_pipeline.workspace.workspace import Workspace

ALL = "all_suites"
INGEST = "ingest_suites"
COMPARE = "compare_suites"


def suite_job_name(suite: str) -> str:
    """Returns the name of the job that evaluates one suite."""
    return f"suite_{suite}"


@dg.definitions
def jobs() -> dg.Definitions:
    """Returns a job for each suite, one for all, one that reads the suites' files, and one that compares.

    A run of the first two has one model version.
    """
    suites = list(Workspace(find_home()).suites)
    if not suites:
        return dg.Definitions()
    every = dg.define_asset_job(
        ALL,
        dg.AssetSelection.groups(*suites),
        description="Every suite, for one model version.",
    )
    keys = [dg.AssetKey([suite, name]) for suite in suites for name in INGESTING]
    ingest = dg.define_asset_job(INGEST, dg.AssetSelection.assets(*keys), description="Files and cases of every suite.")
    keys = [dg.AssetKey([suite, name]) for suite in suites for name in COMPARING]
    compare = dg.define_asset_job(
        COMPARE, dg.AssetSelection.assets(*keys), description="Compares the model versions of every suite; asks nobody."
    )
    single = [
        dg.define_asset_job(
            suite_job_name(name),
            dg.AssetSelection.groups(name),
            description=f"The suite {name}, for one model version.",
        )
        for name in suites
    ]
    return dg.Definitions(jobs=[every, ingest, compare, *single])
