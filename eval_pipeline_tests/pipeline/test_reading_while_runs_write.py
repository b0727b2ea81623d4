"""A reader of the published store, while two processes evaluate model versions."""

import os
import subprocess
import sys

import duckdb

from eval_pipeline_tests.reader import TORN, Reader
from eval_pipeline_tests.support import ROOT, Lab

RUN = "from eval_pipeline.cli import main; main()"


def test_a_reader_meets_neither_a_lock_nor_a_torn_state_while_eight_partitions_are_made(lab: Lab) -> None:
    lab.suite()
    names = [f"model-{i}" for i in range(8)]
    lab.versions(
        *[{"name": name, "provider": "simulated", "options": {"seed": i, "rates": {}}} for i, name in enumerate(names)]
    )
    with Reader(lab.home.store) as reader:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", RUN, "run", "--no-report", "--eval-date", "2026-03-01"]
                + [argument for name in half for argument in ("--model-version", name)],
                env=os.environ | lab.environment,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for half in (names[::2], names[1::2])
        ]
        outputs = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert reader.wrong == []
    assert len(reader.seen) > 1
    assert reader.looks > len(names)
    assert lab.one("SELECT count(DISTINCT model_version) FROM turn_results") == 8
    # The reader would see it: what it asks finds tables that disagree.
    with duckdb.connect(str(lab.home.store)) as connection:
        connection.execute("DELETE FROM turn_results WHERE model_version = 'model-3' AND turn_index = 1")
        assert len(connection.execute(TORN).fetchall()) == 2
