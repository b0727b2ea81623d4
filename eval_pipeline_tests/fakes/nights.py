"""A program that prints which nights the schedule has in October 2026, and today's date, as JSON."""

import json
from datetime import UTC, datetime
from itertools import islice


def main() -> None:
    """Prints a line."""
    import dagster as dg
    from dagster._utils.schedules import schedule_execution_time_iterator

    from eval_pipeline.core.days import today
    from eval_pipeline.core.home import find_home
    from eval_pipeline.definitions import defs
    from eval_pipeline.defs.assets.partitions import DIMENSION
    from eval_pipeline.defs.running.instance import open_instance

    schedule = defs.resolve_schedule_def("nightly")
    begin = datetime(2026, 10, 23, 12, tzinfo=UTC).timestamp()
    ticks = schedule_execution_time_iterator(begin, schedule.cron_schedule, schedule.execution_timezone)
    found = []
    with open_instance(find_home()) as instance:
        instance.add_dynamic_partitions(DIMENSION, ["a"])
        for tick in islice(ticks, 4):
            with dg.build_schedule_context(
                instance, scheduled_execution_time=tick, repository_def=defs.get_repository_def()
            ) as context:
                (request,) = schedule.evaluate_tick(context).run_requests or ()
            found.append([tick.astimezone(UTC).isoformat(timespec="minutes")[:16], request.run_key])
    print(json.dumps([found, str(today())]), flush=True)
