"""Bytes written by publishing one more evaluation into a store of many, in both forms.

`python -m benchmarks.store_forms [EVALUATIONS] [TURNS]` makes a record of that many synthetic evaluations of finqa (40
by default) of that many turns each (1,000), publishes it, adds one evaluation, and counts what publishing that writes:
the bytes that the process passes to `write` (`wchar` in `/proc/self/io`), beside the bytes of the evaluation's files.
Random texts take the place of prompts and responses, since repeated ones would be compressed to nothing.
"""

import os
import random
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import GENERATION_PROMPTS, GENERATIONS, METRICS, TURN_RESULTS
from eval_pipeline_tests.store.samples import (
    RECORD_TABLES,
    key_of,
    prompt_hash,
    put,
    put_model,
    put_partition,
    put_suite,
)

FIRST = date(2026, 1, 1)
PUBLISH = """
import sys
from pathlib import Path
from eval_pipeline.store.published.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline_tests.store.samples import TRACKS
import duckdb, resource
home = Path(sys.argv[1])
before = int(Path("/proc/self/io").read_text().split()[3])
publish(Record(home / "record"), home / "eval.duckdb", TRACKS)
used = resource.getrusage(resource.RUSAGE_SELF)
print(int(Path("/proc/self/io").read_text().split()[3]) - before, used.ru_utime + used.ru_stime, used.ru_maxrss // 1024)
"""


def add(record: Record, number: int, turns: int) -> int:
    """Writes one evaluation; returns the bytes of its files."""
    draw = random.Random(number)
    key = key_of(day=FIRST + timedelta(days=number))
    words = [f"{draw.getrandbits(64):x}" for _ in range(4096)]
    texts = [" ".join(draw.choices(words, k=60)) for _ in range(turns)]
    put_partition(record, key, turns=1, whole=True)
    ids = [f"finqa/c{index // 2}#{index % 2}" for index in range(turns)]
    place = {"turn_id": ids, "turn_index": [index % 2 for index in range(turns)], "sample": [0] * turns}
    hashes = list(map(prompt_hash, texts))
    put(record, GENERATION_PROMPTS, key, turns, prompt_hash=hashes, text=texts)
    put(record, GENERATIONS, key, turns, **place, number=[0] * turns, prompt_hash=hashes, response=texts)
    put(record, METRICS, key, turns, **place, metric=["numerical_match"] * turns, value=[draw.random() for _ in ids])
    put(record, TURN_RESULTS, key, turns, **place, tokens=[draw.randrange(10_000) for _ in ids])
    return sum(record.path(table, key).stat().st_size for table in RECORD_TABLES if key.fits(table))


def publish(home: Path, form: str) -> tuple[int, float, int]:
    """Returns bytes written, CPU seconds and MiB of one publishing in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PUBLISH, str(home)],
        env=os.environ | {"EVAL_STORE": form}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    written, seconds, memory = done.stdout.splitlines()[-1].split()[-3:]
    return int(written), float(seconds), int(memory)


class OneMore(NamedTuple):
    """What publishing one more evaluation takes.

    Attributes:
        size: bytes of its files in the record.
        written: bytes written.
        store: bytes of `eval.duckdb`, after it; 0 in the catalog form.
        cpu_s: CPU seconds.
        mib: largest resident set.
    """

    size: int
    written: int
    store: int
    cpu_s: float
    mib: int


def one_more(form: str, *, evaluations: int, turns: int) -> OneMore:
    """Publishes one more evaluation into a store of that form with so many."""
    with tempfile.TemporaryDirectory() as folder:
        home, store = Path(folder), Path(folder, "eval.duckdb")
        record = Record(home / "record")
        put_suite(record, turns=turns)
        put_model(record)
        for number in range(evaluations):
            add(record, number, turns)
        publish(home, form)
        size = add(record, evaluations, turns)
        written, seconds, memory = publish(home, form)
        return OneMore(size, written, store.stat().st_size if form == "file" else 0, seconds, memory)


def main(evaluations: int = 40, turns: int = 1000) -> None:
    """Prints a line for each form."""
    for form in ("file", "catalog"):
        told = one_more(form, evaluations=evaluations, turns=turns)
        print(
            f"{form}: {evaluations} evaluations of {turns} turns; one more has {told.size:,} bytes; publishing it "
            f"wrote {told.written:,} bytes ({told.written / told.size:.2f} times), "
            f"{told.cpu_s:.2f} CPU s, {told.mib} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
