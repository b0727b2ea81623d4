import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import (
    GENERATION_PROMPTS,
    METRICS,
)
from eval_pipeline_tests.store.samples import key_of, put


def test_missing_and_damaged_files_are_named(record: Record) -> None:
    path = record.path(METRICS, key_of())
    with pytest.raises(StoreError, match=r"part\.parquet does not exist; run the stage"):
        record.read(METRICS, key_of())
    path.parent.mkdir(parents=True)
    for junk in (b"", b"PAR1", b"not parquet at all, but long enough"):
        path.write_bytes(junk)
        with pytest.raises(StoreError, match=r"is damaged .* `eval-pipeline doctor --repair` makes it again") as caught:
            record.header(METRICS, key_of())
        assert str(path) in str(caught.value)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(StoreError, match="its footer is not one of eval-pipeline"):
        record.header(METRICS, key_of())


def test_a_flipped_bit_is_found(record: Record) -> None:
    put(record, METRICS, key_of(), 100)
    path = record.path(METRICS, key_of())
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little")
    for place in range(4, len(data) - 8 - footer, 17):
        changed = bytearray(data)
        changed[place] ^= 0x10
        path.write_bytes(changed)
        with pytest.raises(StoreError, match="its bytes are not those that were written"):
            record.verify(METRICS, key_of())


def test_a_truncated_file_is_found(record: Record) -> None:
    put(record, METRICS, key_of(), 100)
    path = record.path(METRICS, key_of())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StoreError, match="is damaged"):
        record.read(METRICS, key_of())


def test_leftovers_of_killed_writers_are_swept(record: Record) -> None:
    folder = record.path(METRICS, key_of()).parent
    with record.writer(METRICS, key_of(), {}):
        (mine,) = folder.iterdir()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone = folder / mine.name.replace(f".{os.getpid()}.", f".{dead.pid}.")
    alive = folder / mine.name.replace(f".{os.getpid()}.", f".{os.getppid()}.")
    elsewhere = folder / ".part.parquet.0ther0st.1.1.tmp"
    old = folder / ".part.parquet.0ther0st.2.1.tmp"
    for path in (gone, alive, elsewhere, old):
        path.write_bytes(b"half")
    yesterday = time.time() - 90_000
    os.utime(old, (yesterday, yesterday))
    put(record, METRICS, key_of())
    assert set(folder.iterdir()) == {folder / "part.parquet", alive, elsewhere}


KILLED_WRITER = """
import sys
from pathlib import Path
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import METRICS
from eval_pipeline_tests.store.samples import key_of, rows
record = Record(Path(sys.argv[1]))
columns = rows(METRICS, 2000)
print("ready", flush=True)
for turn in range(100_000):
    with record.writer(METRICS, key_of(), {"turn": str(turn)}) as writer:
        for _ in range(5):
            writer.write({**columns, "value": [float(turn)] * 2000})
    print(turn, flush=True)
"""


def test_a_killed_writer_leaves_the_last_whole_file(tmp_path: Path) -> None:
    for round_, pause in enumerate((0.013, 0.071)):
        record = Record(tmp_path / str(round_))
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED_WRITER, str(record.root)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        while child.stdout.readline().strip() != "1":
            pass
        time.sleep(pause)
        child.kill()
        said = [1, *(int(line) for line in child.communicate()[0].split())]
        header = record.verify(METRICS, key_of())
        turn = int(header.made_from["turn"])
        assert turn in {said[-1], said[-1] + 1}, "what was acknowledged is there"
        assert set(record.read(METRICS, key_of(), ["value"]).column("value").to_pylist()) == {float(turn)}
        put(record, METRICS, key_of())
        assert [path.name for path in record.path(METRICS, key_of()).parent.iterdir()] == ["part.parquet"]


FULL_DISK = """
import resource, sys
from pathlib import Path
from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import GENERATION_PROMPTS
from eval_pipeline_tests.store.samples import key_of, put
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    put(Record(Path(sys.argv[1])), GENERATION_PROMPTS, key_of(), 3000, text=[str(n) * 1000 for n in range(3000)])
except StoreError as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [4_000])
def test_a_full_disk_changes_nothing(record: Record, limit: int) -> None:
    put(record, GENERATION_PROMPTS, key_of())
    before = record.verify(GENERATION_PROMPTS, key_of())
    command = [sys.executable, "-c", FULL_DISK, str(record.root), str(limit)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("no room on the disk to write ")
    assert "part.parquet; free some and run again, nothing recorded so far is lost" in said.stdout
    assert said.stderr == ""
    assert record.verify(GENERATION_PROMPTS, key_of()) == before
    assert len(list(record.path(GENERATION_PROMPTS, key_of()).parent.iterdir())) == 1
