"""Two hosts that only a network joins: namespaces with the same host name, the same process ids and homes of their own.

The database is reached over that network, so that it needs certificates; those of deploy/certificates.sh fit.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline.core.errors import UsageError
from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline_plugins.postgres.address import database_address
from eval_pipeline_plugins.postgres.leases import LEASE_S
from eval_pipeline_tests.fakes.anthropic_server import KEY, AnthropicServer
from eval_pipeline_tests.plugins.postgres import host
from eval_pipeline_tests.plugins.postgres.test_hosts import CONCURRENCY, Host, all_were_paid_for, responses, until
from eval_pipeline_tests.remote import answers, charged, prepare
from eval_pipeline_tests.servers import STATE_PASSWORD, StatePostgres
from eval_pipeline_tests.support import ROOT, Lab

pytestmark = pytest.mark.services("postgres")
LEASE = 4.0
NAMES = ("a", "b")
_TAG = f"e{os.getpid() % 100_000}"
_NET = f"10.{os.getpid() % 250}.{os.getpid() // 250 % 250}"
HERE = f"{_NET}.1"


def ip(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def network() -> Iterator[None]:
    """A bridge with the address HERE, and a namespace on it for each host."""
    made = [ip("link", "add", f"{_TAG}br", "type", "bridge"), ip("addr", "add", f"{HERE}/24", "dev", f"{_TAG}br")]
    made.append(ip("link", "set", f"{_TAG}br", "up"))
    for number, name in enumerate(NAMES):
        space, outside = f"{_TAG}{name}", f"{_TAG}v{name}"
        made.append(ip("netns", "add", space))
        made.append(ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", space))
        made.append(ip("link", "set", outside, "master", f"{_TAG}br", "up"))
        made.append(ip("-n", space, "addr", "add", f"{_NET}.{number + 2}/24", "dev", "eth0"))
        made.append(ip("-n", space, "link", "set", "eth0", "up"))
    try:
        if failed := [done.stderr.strip() for done in made if done.returncode]:
            pytest.skip(f"network namespaces are not permitted here: {failed[0]}")
        yield
    finally:
        for name in NAMES:
            ip("netns", "del", f"{_TAG}{name}")
        ip("link", "del", f"{_TAG}br")


@pytest.fixture
def url(network: None, state_server: StatePostgres, tmp_path: Path) -> Iterator[str]:
    """An empty database, as the namespaces reach it."""
    certificates = tmp_path / "certificates"
    subprocess.run([ROOT / "deploy" / "certificates.sh", certificates, "postgres"], check=True)
    state_server.restart_for_others(HERE, certificates / "postgres.crt")
    place = state_server.new_database().replace("127.0.0.1", "postgres")
    yield f"{place}?hostaddr={HERE}&sslmode=verify-full&sslrootcert={certificates / 'ca.crt'}"
    state_server.stop()
    state_server.start()


class Namespace(Host):
    """A run in a namespace: the same name on all, and in each the first process."""

    def __init__(self, space: str, lab: Lab, url: str) -> None:
        self.log = lab.home.root.parent / "run.log"
        inside = ["ip", "netns", "exec", f"{_TAG}{space}", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        program = [sys.executable, "-m", host.__name__, "host", str(lab.home.root), str(lab.home.data)]
        told = {DATABASE_URL: url, "ANTHROPIC_API_KEY": KEY, LEASE_S: str(LEASE)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*inside, *program], cwd=ROOT, env=os.environ | lab.environment | told, stdout=log, stderr=log
            )


@pytest.fixture
def model(network: None) -> Iterator[AnthropicServer]:
    server = AnthropicServer(answers, latency_s=0.05)
    server.host = HERE
    with server:
        yield server


def labs(folder: Path, server: AnthropicServer) -> list[Lab]:
    return [prepare(Lab.at(folder / name), server, concurrency=CONCURRENCY) for name in NAMES]


def test_a_host_whose_network_is_gone_is_outlived_and_two_take_turns(
    url: str, model: AnthropicServer, tmp_path: Path
) -> None:
    a, b = labs(tmp_path, model)
    first = Namespace("a", a, url)
    until(lambda: len(model.log) >= 5, first)
    second = Namespace("b", b, url)
    until(lambda: len(model.log) >= 12, first, second)
    before = charged(model).copy()
    assert before == dict.fromkeys(before, 1), "the second waits for the first"
    assert ip("link", "set", f"{_TAG}va", "down").returncode == 0
    gone_at = time.monotonic()
    asked = len(model.log)
    until(lambda: len(model.log) >= asked + 2 * CONCURRENCY, second)
    assert time.monotonic() - gone_at >= LEASE / 2, "it was not waited for"
    assert second.wait() == 0, second.said()
    first.process.kill()
    first.wait()
    all_were_paid_for(model, CONCURRENCY * 4)
    assert len(responses(b)) == 48


def test_without_certificates_the_database_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = "beyond this machine it needs sslmode=verify-full and sslrootcert"
    for rest in (f"?hostaddr={HERE}", f"?hostaddr={HERE}&sslmode=require"):
        monkeypatch.setenv(DATABASE_URL, url.partition("?")[0].replace("@postgres", "@localhost") + rest)
        with pytest.raises(UsageError, match=needs) as told:
            database_address()
        assert STATE_PASSWORD not in str(told.value)
