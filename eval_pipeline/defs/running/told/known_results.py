"""What Dagster knows of the assets' last results, which tells what a new one was made from and whether it is late."""

import hashlib
from collections.abc import Collection, Sequence

import dagster as dg

from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.dagster_inside.running import (
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    extract_data_version_from_entry,
)
from eval_pipeline.defs.running.told.told_events import Source

_MADE = dg.DagsterEventType.ASSET_MATERIALIZATION
_MOST_PARTITIONS = 100
"""Beyond, Dagster counts an input with partitions as one without."""


class KnownResults:
    """The last materialisation of some assets in an instance; those that are stored meanwhile have to be `noted`."""

    def __init__(self, instance: dg.DagsterInstance, keys: Collection[dg.AssetKey]) -> None:
        self._instance = instance
        found = (record.asset_entry for record in instance.get_asset_records(list(keys)))
        self._last = {entry.asset_key: made for entry in found if (made := entry.last_materialization_record)}
        self._versions: dict[tuple[dg.AssetKey, str], str] = {}

    def noted(self, key: dg.AssetKey, partition: str | None, version: str, made: dg.EventLogRecord) -> None:
        """Notes an event that has been stored, with the data version that it tells."""
        self._last[key] = made
        if partition is not None:
            self._versions[key, partition] = version

    def is_later(self, key: dg.AssetKey, partition: str | None, at: float) -> bool:
        """Whether there is a result that was made after that time."""
        last = self._last.get(key)
        if last is None or last.timestamp <= at:
            return False
        if partition is None:
            return True
        wanted = dg.AssetRecordsFilter(key, asset_partitions=[partition], after_timestamp=at)
        return bool(self._instance.fetch_materializations(wanted, limit=1).records)

    def source(self, key: dg.AssetKey, partitioned: bool, partition: str | None) -> Source:
        """Returns what an asset is as the input of one that is made now, for a partition or, if None, for all."""
        last = self._last.get(key)
        if last is None:
            return Source(DEFAULT_DATA_VERSION.value, None)
        wanted = [partition] if partition else self._instance.get_dynamic_partitions(DIMENSION) if partitioned else []
        if partitioned and len(wanted) < _MOST_PARTITIONS:
            return Source(self._combined(key, wanted), last.storage_id)
        version = extract_data_version_from_entry(last.event_log_entry)
        return Source((version or DEFAULT_DATA_VERSION).value, last.storage_id)

    def _combined(self, key: dg.AssetKey, partitions: Sequence[str]) -> str:
        """Returns the data version of several partitions, as Dagster computes it."""
        missing = [name for name in partitions if (key, name) not in self._versions]
        if missing:
            storage = self._instance.event_log_storage
            found = storage.get_latest_tags_by_partition(key, _MADE, [DATA_VERSION_TAG], asset_partitions=missing)
            self._versions |= {(key, name): tags[DATA_VERSION_TAG] for name, tags in found.items()}
        versions = [self._versions[key, name] for name in sorted(partitions) if (key, name) in self._versions]
        return hashlib.sha256("".join(versions).encode()).hexdigest()
