"""Settings of Dask with which schedulers and workers that have nothing to do take little of a processor.

By default each looks at itself up to 50 times a second (tick, memory, system monitor), and a worker takes samples of
its own stack: together 4% of a processor. They are environment variables, as schedulers and workers are started with
Dask's own commands (docs/scale.md).
"""

from collections.abc import Mapping

QUIET: Mapping[str, str] = {
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
    "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "1s",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
}
