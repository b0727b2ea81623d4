"""What a command's note tells of its runs, as values: the steps of each with their times, and those that were left out.

Nothing here asks Dagster; `telling` makes its events of this.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg

from eval_pipeline.chain.stage import Chain, Stage, before
from eval_pipeline.core.model import Json
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.dagster_inside.running import (
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    extract_data_version_from_entry,
)
from eval_pipeline.defs.running.told.told_events import Source
from eval_pipeline.operations.upkeep.keeping import REPORTS
from eval_pipeline.stages.checks.verdicts import CheckVerdict
from eval_pipeline.workspace.noting.noted import Entry, Noted
from eval_pipeline.workspace.workspace import StageResult


@dataclass(frozen=True, slots=True)
class NotedStep:
    """A stage that a run of a command has run.

    Attributes:
        began, ended: in seconds since 1970.
        error: why what depends on it was not made: it failed, or a check; empty if it went well.
        result: what it made; None if it failed.
        verdicts: what its checks said, by name.
    """

    suite: str
    stage: str
    began: float
    ended: float
    error: str
    result: StageResult | None
    verdicts: Mapping[str, CheckVerdict]


@dataclass(frozen=True, slots=True)
class NotedRun:
    """A run of a command: of one model version, or of the comparisons of suites.

    Attributes:
        model_version: empty for comparisons.
        eval_date: may be empty for comparisons.
        status: `success`, `failed` or `canceled`.
        steps: in the order in which they ended; at least one.
    """

    run_id: str
    model_version: str
    eval_date: str
    scope: str
    epoch: str
    status: str
    began: float
    ended: float
    steps: tuple[NotedStep, ...]

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites of its steps."""
        return tuple(dict.fromkeys(step.suite for step in self.steps))


def noted_runs(noted: Noted) -> Iterator[NotedRun]:
    """Yields the runs of a command that got as far as a step."""
    steps: dict[str, list[NotedStep]] = {}
    ends: dict[str, Entry] = {}
    for entry in noted.entries:
        if "stage" in entry:
            steps.setdefault(entry["run"], []).append(_step(entry))
        elif "run_ended" in entry:
            ends[entry["run_ended"]] = entry
    for entry in noted.entries:
        if "suites" not in entry or not (own := steps.get(entry["run"])):
            continue
        own.sort(key=lambda step: step.ended)
        end = ends.get(entry["run"], {"status": "failed"})
        # All runs of a command are noted as ended at its end; one that came to its own end did so with its last step.
        ended = own[-1].ended if end["status"] == "success" or "at" not in end else _seconds(end["at"])
        name, day, scope, epoch = (
            str(entry.get(name) or "") for name in ("model_version", "eval_date", "scope", "epoch")
        )
        began = _seconds(entry["at"])
        yield NotedRun(entry["run"], name, day, scope, epoch, end["status"], began, ended, tuple(own))


def left_out(chain: Chain, steps: Mapping[str, NotedStep]) -> list[Stage]:
    """Returns the stages of an evaluation that a run left out because one that they need had failed.

    Reports do not count, as they may not have been asked for.
    """
    missing = {name for name, step in steps.items() if step.error}
    found = []
    for stage in chain:
        if stage.name not in steps and missing.intersection(before(chain, stage)):
            missing.add(stage.name)
            if not stage.whole_suite and stage.name not in REPORTS:
                found.append(stage)
    return found


def _step(entry: Entry) -> NotedStep:
    verdicts = {
        check["name"]: CheckVerdict(check["passed"], check["text"], check["facts"], check["warning"])
        for check in entry.get("checks", ())
    }
    result = None
    if "rows" in entry:
        facts = {name: _fact(value) for name, value in entry["facts"].items()}
        result = StageResult(entry["rows"], entry["hash"], entry["reused"], facts)
    began, ended = _seconds(entry["began"]), _seconds(entry["ended"])
    return NotedStep(entry["suite"], entry["stage"], began, ended, entry.get("error", ""), result, verdicts)


def _fact(value: Json) -> Any:
    """Returns a fact as the stage told it; JSON has no paths."""
    return Path(str(value["path"])) if isinstance(value, dict) and value.keys() == {"path"} else value


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()


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
