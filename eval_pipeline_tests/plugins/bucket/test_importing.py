"""What one host imports into a home in a bucket is there on all hosts."""

import json
import shutil
from pathlib import Path

import pytest

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.system.private import make_private
from eval_pipeline.store.durable import exchange
from eval_pipeline.store.tables import TURN_RESULTS
from eval_pipeline.suites.headers import refuse_copy
from eval_pipeline.workspace.homes.places import place_of
from eval_pipeline_plugins.bucket import bucket as port
from eval_pipeline_plugins.bucket import imported_objects
from eval_pipeline_tests.fakes.bucket_server import BucketServer
from eval_pipeline_tests.plugins.bucket.hosts import Hosts

pytestmark = pytest.mark.services("postgres", "bucket")


def capitals(path: Path, *more: str) -> str:
    path.write_text("\n".join(["id,question,answer", "a,Capital of France?,Paris", "b,Capital of Italy?,Rome", *more]))
    return str(path)


def answers(path: Path, *given: str) -> str:
    rows = [{"case_id": case, "turn_index": 0, "response": text} for case, text in zip("abc", given, strict=False)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_a_suite_that_is_imported_anew_replaces_its_copy_at_once(
    hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []

    def cases(folder: Path) -> int:
        return len((folder / "cases.jsonl").read_text().splitlines())

    def noting(made: Path, there: Path) -> None:
        before = cases(there)
        exchange(made, there)
        seen.append((before, cases(there)))

    monkeypatch.setattr(imported_objects, "exchange", noting)
    suite = ("--suite", "capitals")
    assert hosts.run("a", "import", "text", capitals(tmp_path / "x.csv"), *suite).code == 0
    assert "capitals" in hosts.use("b").workspace().suites
    more = capitals(tmp_path / "x.csv", "c,Capital of Spain?,Madrid")
    assert hosts.run("a", "import", "text", more, *suite).code == 0
    home = hosts.use("b").home
    assert "capitals" in hosts.use("b").workspace().suites
    assert seen == [(2, 3)]
    assert [path.name for path in home.imported_suites.iterdir()] == ["capitals"]


@pytest.mark.parametrize("before", [None, "mine: 1"])
def test_model_versions_that_the_bucket_did_not_take_are_not_there(
    hosts: Hosts, server: BucketServer, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    home = hosts.use("a").home
    imported, path = place_of(home).imported(), home.imported_model_versions

    def write(text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    make_private(home.root)
    path.parent.mkdir(parents=True)
    if before is not None:
        imported.change_model_versions(lambda: write(before))

    def failing() -> None:
        write("theirs: 2")
        server.failing = "503 Service Unavailable"

    monkeypatch.setattr(port, "PATIENCE_S", 0.1)
    with pytest.raises(StoreError):
        imported.change_model_versions(failing)
    assert (path.read_text() if path.exists() else None) == before
    server.failing = ""
    imported.refresh()
    assert (path.read_text() if path.exists() else None) == before
    imported.change_model_versions(lambda: write("ours: 3"))
    assert path.read_text() == "ours: 3"


def test_another_host_evaluates_and_removes_what_was_imported(
    hosts: Hosts, server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = hosts.run("a", "import", "text", capitals(tmp_path / "x.csv"), "--suite", "capitals")
    assert said.code == 0, said.text
    mine = ("--suite", "capitals", "--model-version", "mine")
    said = hosts.run("b", "import", "predictions", answers(tmp_path / "p.jsonl", "Paris", "Milan"), *mine)
    assert said.code == 0, said.text
    names = {name.removeprefix("team/evals/imported/") for name in server.objects(hosts.address.bucket)}
    assert names == {"archives/capitals.tar", "model_versions.yaml", "predictions/mine/capitals.jsonl"}

    at_c = hosts.use("c")
    at_c.evaluate("capitals", "mine")
    scored = at_c.inputs("capitals", "mine").read(TURN_RESULTS).to_pylist()
    assert [(row["turn_id"], row["correct"]) for row in scored] == [("capitals/a#0", True), ("capitals/b#0", False)]

    # The suite is imported anew, on another host than before: all have it whole, and nobody's work goes into a copy.
    said = hosts.run("b", "import", "text", capitals(tmp_path / "x.csv", "c,Capital of Spain?,Madrid"), *mine[:2])
    assert said.code == 0 and "3 cases" in said.out, said.text
    for name in ("a", "b", "c"):
        suite = hosts.use(name).workspace().suite("capitals")
        assert len((suite.folder / "cases.jsonl").read_text().splitlines()) == 3, name
        with pytest.raises(UsageError, match="was imported into a bucket"):
            refuse_copy(suite.folder)
    kept = server.objects(hosts.address.bucket)
    hosts.use("a").workspace().imported.share_suite("capitals")
    assert server.objects(hosts.address.bucket) == kept

    # What the bucket did not take is not imported.
    at_a = hosts.use("a")
    monkeypatch.setattr(port, "PATIENCE_S", 0.1)
    (at_a.home.imported_suites / "other").mkdir()
    server.failing = "503 Service Unavailable"
    with pytest.raises(StoreError):
        at_a.workspace().imported.share_suite("other")
    server.failing = ""
    assert not (at_a.home.imported_suites / "other").exists()

    theirs = ("--suite", "capitals", "--model-version", "theirs")
    assert hosts.run("c", "import", "predictions", str(tmp_path / "p.jsonl"), *theirs).code == 0
    assert {*hosts.use("b").workspace().model_versions} == {"mine", "theirs"}
    said = hosts.run("a", "remove", "theirs", "--purge", "--yes")
    assert said.code == 0, said.text
    assert not [name for name in server.objects(hosts.address.bucket) if "theirs" in name]
    for name in ("b", "c"):
        at = hosts.use(name)
        assert {*at.workspace().model_versions} == {"mine"}
        assert [path.parent.name for path in at.home.predictions.rglob("*.jsonl")] == ["mine"]

    # Whoever deletes a suite's object deletes the suite.
    server.client.delete_object(Bucket=hosts.address.bucket, Key="team/evals/imported/archives/capitals.tar")
    assert hosts.use("b").workspace().suites == {}
    shutil.rmtree(hosts.use("c").home.root)
    assert hosts.use("c").workspace().suites == {}
