"""Opens a home's record, in its folder or in its bucket."""

from eval_pipeline.core.home import Home
from eval_pipeline.store.record import Record


def open_record(home: Home) -> Record:
    """Returns the record of a home; in a bucket, it connects when it is first used."""
    if home.bucket is None:
        return Record(home.record)
    from eval_pipeline.objects.bucket import Bucket
    from eval_pipeline.store.mirrored.record import MirroredRecord

    return MirroredRecord(home.record, Bucket(home.bucket))
