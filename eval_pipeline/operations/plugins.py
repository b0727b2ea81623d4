"""Lists the plug-ins of other packages with their problems."""

from collections.abc import Callable, Iterator, Mapping

from eval_pipeline.core.installed.plugins import GROUPS, Plugin, installed
from eval_pipeline.operations.added_commands import ALL_COMMANDS, ALL_EXPORTS
from eval_pipeline.operations.recorded.forms import ALL_LOGS
from eval_pipeline.providers.registry import ALL_PROVIDERS
from eval_pipeline.reports.registry import ALL_REPORTS
from eval_pipeline.state.place import ALL_DATABASES
from eval_pipeline.tracks.registry import ALL_IMPORTERS, ALL_TRACKS
from eval_pipeline.tracks.scored.suite_metrics import METRICS
from eval_pipeline.workspace.homes.places import ALL_PLACES
from eval_pipeline.workspace.shards.cluster import ALL_CLUSTERS
from eval_pipeline.workspace.tabled.track_tables import INSTALLED_AGGREGATES

_TROUBLE: Mapping[str, Callable[[Plugin], str | None]] = {
    "tracks": ALL_TRACKS.trouble,
    "providers": ALL_PROVIDERS.trouble,
    "metrics": METRICS.trouble,
    "importers": ALL_IMPORTERS.trouble,
    "logs": ALL_LOGS.trouble,
    "exports": ALL_EXPORTS.trouble,
    "commands": ALL_COMMANDS.trouble,
    "reports": ALL_REPORTS.trouble,
    "aggregates": INSTALLED_AGGREGATES.trouble,
    "homes": ALL_PLACES.trouble,
    "databases": ALL_DATABASES.trouble,
    "clusters": ALL_CLUSTERS.trouble,
}


def plugins_with_trouble() -> Iterator[tuple[Plugin, str | None]]:
    """Loads every plug-in of another package and yields it, with a sentence if it cannot be used."""
    for plugin in installed():
        if plugin.is_ours:
            continue
        if plugin.group in _TROUBLE:
            yield plugin, _TROUBLE[plugin.group](plugin)
        else:
            yield plugin, str(plugin.error(f"is in a group that nobody reads; known: {', '.join(GROUPS)}"))
