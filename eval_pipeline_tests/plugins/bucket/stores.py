"""Hosts that write the sample record into a bucket and publish it: python -m eval_pipeline_tests.plugins.bucket.stores.

As a program it is one more host, which is to be killed: BUCKET PREFIX FOLDER VALUE.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline.store.keys import RecordKey
from eval_pipeline.store.listing import Gate
from eval_pipeline.store.published.publish import publish, publish_full
from eval_pipeline.store.published.publisher import PublishResult
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import CASES, METRICS, TURN_RESULTS
from eval_pipeline_plugins.bucket.bucket import Bucket
from eval_pipeline_plugins.bucket.publisher import MirroredPublisher
from eval_pipeline_plugins.bucket.record import MirroredRecord
from eval_pipeline_tests.store.samples import TRACKS, contents, key_of, put, put_model


@dataclass
class Host:
    """A host with a working folder of its own, and no lease."""

    folder: Path
    address: BucketAddress

    @property
    def record(self) -> MirroredRecord:
        return MirroredRecord(self.folder / "record", Bucket(self.address))

    @property
    def out(self) -> Path:
        return self.folder / "eval.duckdb"

    @property
    def publisher(self) -> MirroredPublisher:
        return MirroredPublisher(self.record, self.out, TRACKS, Gate())

    def publish(self, *, full: bool = False) -> PublishResult:
        return publish_full(self.record, self.out, TRACKS) if full else publish(self.record, self.out, TRACKS)

    def shown(self) -> dict[str, list[tuple[object, ...]]]:
        """What this host's store has after looking for news."""
        self.publisher.refresh(10)
        return contents(self.out)

    def problems(self) -> list[str]:
        return list(self.publisher.problems(lambda size: None))


def few(record: Record, model: str = "alpha", suite: str = "finqa", value: float = 1.0) -> None:
    """Some of the tables of an evaluation, and of what belongs to it."""
    put_model(record, model)
    put(record, CASES, RecordKey.of_suite(suite))
    key = key_of(model, suite=suite)
    put(record, METRICS, key, value=[value])
    put(record, TURN_RESULTS, key, correct=[value == 1.0])


def main(bucket: str, prefix: str, folder: str, value: str) -> None:
    host = Host(Path(folder), BucketAddress(bucket, prefix))
    host.folder.mkdir(parents=True, exist_ok=True)
    few(host.record, value=float(value))
    host.publish()


if __name__ == "__main__":
    main(*sys.argv[1:])
