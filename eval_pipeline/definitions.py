"""The Dagster code location: the assets, jobs, schedules and sensors of `eval_pipeline.defs`.

They are named here, because Dagster's own search wants a project with a `pyproject.toml` above the package, which an
installed package has not. Modules are imported, not their `@dg.definitions`: a location may have only one.
"""

import dagster as dg

from eval_pipeline.core.home import find_home
from eval_pipeline.core.system.private import make_private
from eval_pipeline.core.system.supervision import end_with_supervisor
from eval_pipeline.defs.assets import resources, suite_assets
from eval_pipeline.defs.automation import digests, jobs, notifications, schedules, scrubbing, sensors

end_with_supervisor()
make_private(find_home().root)
defs = dg.Definitions.merge(
    resources.resources(),
    suite_assets.suite_defs(),
    jobs.jobs(),
    dg.Definitions(
        jobs=[scrubbing.scrubbing],
        schedules=[schedules.nightly, scrubbing.nightly_scrub],
        sensors=[
            sensors.register_model_versions,
            digests.morning_digest,
            notifications.notify_failed_run,
            notifications.notify_failed_check,
        ],
    ),
)
