"""A publisher of a catalog that dies at any step leaves the old state or the new one, and the next one finishes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline.store.catalog import sweeping
from eval_pipeline.store.catalog.checking import catalog_problems
from eval_pipeline.store.publish import publish
from eval_pipeline.store.record import Record
from eval_pipeline_tests.store.crashing import DIED
from eval_pipeline_tests.store.samples import TRACKS, contents, filled, key_of, put_partition, put_suite


@pytest.mark.soak
def test_a_publisher_may_die_at_any_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_STORE", "catalog")
    monkeypatch.setattr(sweeping, "_OPENING_S", 0.0)
    home = tmp_path / "home"
    record, out = Record(home / "record"), home / "eval.duckdb"
    filled(record)
    publish(record, out, TRACKS)
    old = contents(out)
    put_suite(record, turns=4)
    put_partition(record, key_of("beta"), value=0.5)
    command = [sys.executable, "-m", "eval_pipeline_tests.store.crashing", str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:

        def crash(step: str) -> tuple[int, list[str]]:
            child.stdin.write(f"{step}\n")  # type: ignore[union-attr]
            child.stdin.flush()  # type: ignore[union-attr]
            code, steps = json.loads(child.stdout.readline())  # type: ignore[union-attr]
            return code, steps

        code, steps = crash("")
        assert code == 0
        new = contents(out)
        assert new != old
        publish(record, tmp_path / "fresh" / "eval.duckdb", TRACKS)
        whole = set(sweeping.part_files(tmp_path / "fresh" / "catalog" / "parts"))
        found = []
        for step in steps:
            code, _ = crash(step)
            assert code == DIED, step
            seen = contents(out)
            assert seen in (old, new), step
            found.append(seen == new)
            publish(record, out, TRACKS)
            assert contents(out) == new, step
            assert not list(catalog_problems(out, TRACKS)), step
            publish(record, out, TRACKS, erase=True)  # one that died while it removed parts has left nothing to publish
            assert set(sweeping.part_files(home / "catalog" / "parts")) == whole, step
        child.stdin.close()
    assert found == sorted(found), "first the old state, then the new one"
    assert {True, False} == set(found)
    assert any("os.rename manifests" in step for step in steps)
    assert any("os.link" in step for step in steps)
