"""A home in a bucket: two hosts with one database and one bucket do what one does with a folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline.core.bucket_address import BucketAddress
from eval_pipeline.database import leases
from eval_pipeline.database.address import DATABASE_URL
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.fakes.bucket_server import SECRET, BucketServer
from eval_pipeline_tests.objects.hosts import Hosts
from eval_pipeline_tests.remote import RUN, answers, charged, holding, prepare
from eval_pipeline_tests.servers import STATE_PASSWORD, StatePostgres
from eval_pipeline_tests.support import Lab

pytestmark = pytest.mark.services("postgres", "bucket")


@pytest.fixture
def hosts(
    state_server: StatePostgres, address: BucketAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Hosts]:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr("eval_pipeline.suites.cases.rehearse", lambda source: None)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv(DATABASE_URL, state_server.new_database())
    yield Hosts(address, tmp_path / "data", tmp_path, monkeypatch)
    for opened in leases._opened.values():
        opened.close()
    leases._opened.clear()


def test_two_hosts_do_what_one_does_with_a_folder(
    hosts: Hosts, server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AnthropicServer(answers) as model:
        embedded = prepare(Lab.at(tmp_path), model, conversations=3)
        ran = hosts.run("a", *RUN)
        assert ran.code == 0, ran.text
        paid = charged(model)
        assert paid and set(paid.values()) == {1}
        again = hosts.run("b", *RUN)
        assert again.code == 0, again.text
        assert charged(model) == paid
        at_b = hosts.use("b")
        asked = at_b.cli("query", "SELECT count(*) AS n FROM turn_results", "--format", "csv")
        assert asked.out.split() == ["n", "12"], asked.text
        print(len(server.log), {m: sum(1 for x in server.log if x[0] == m) for m in {x[0] for x in server.log}})
        monkeypatch.delenv(DATABASE_URL)
        for name, value in embedded.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("DAGSTER_HOME", str(embedded.home.dagster))
        assert embedded.cli(*RUN).code == 0
    assert contents_of(at_b) == contents_of(embedded)
    assert holding(tmp_path, STATE_PASSWORD) == holding(tmp_path, SECRET) == []


def contents_of(lab: Lab) -> dict[str, list[tuple[object, ...]]]:
    from eval_pipeline_tests.remote import contents

    return contents(lab)
