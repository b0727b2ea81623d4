"""Where a cluster may be: an open port on this machine, certificates beyond it."""

from pathlib import Path

import pytest

from eval_pipeline.core.errors import UsageError
from eval_pipeline.workspace.shards.cluster import ADDRESS, open_cluster
from eval_pipeline_plugins.dask.address import CERTIFICATES, cluster_address


@pytest.mark.parametrize(
    "url", ["tcp://127.0.0.1:8786", "tcp://localhost:8786", "tcp://[::1]:8786", "tcp://127.8.0.1:1"]
)
def test_loopback_needs_no_certificates(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(ADDRESS, url)
    found = cluster_address()
    assert (found.url, found.ca) == (url, None)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("tcp://10.0.0.7:8786", "is refused: whoever reaches an open scheduler can run any code"),
        ("tcp://scheduler:8786", "is refused"),
        ("tcp://0.0.0.0:8786", "is refused"),
        ("tcp://127.0.0.1.evil.example:8786", "is refused"),
        ("tls://scheduler:8786", f"needs certificates: set {', '.join(CERTIFICATES.values())}"),
        ("127.0.0.1:8786", "expected tcp://127.0.0.1:8786, or tls://host:8786"),
        ("tcp://127.0.0.1", "expected tcp://127.0.0.1:8786, or tls://host:8786"),
        ("tcp://127.0.0.1:port", "expected tcp://127.0.0.1:8786, or tls://host:8786"),
        ("inproc://1.2.3.4/5/6", "expected tcp://127.0.0.1:8786, or tls://host:8786"),
        ("ws://127.0.0.1:8786", "expected tcp://127.0.0.1:8786, or tls://host:8786"),
    ],
)
def test_anything_else_is_refused(monkeypatch: pytest.MonkeyPatch, url: str, expected: str) -> None:
    monkeypatch.setenv(ADDRESS, url)
    with pytest.raises(UsageError) as caught:
        open_cluster()
    assert expected in str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_certificates_are_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ADDRESS, "tls://scheduler:8786")
    for name, variable in CERTIFICATES.items():
        (tmp_path / name).write_text("PEM")
        monkeypatch.setenv(variable, str(tmp_path / name))
    found = cluster_address()
    assert found.key == tmp_path / "key"
    (tmp_path / "key").unlink()
    with pytest.raises(UsageError, match=r"EVAL_CLUSTER_KEY=.*: there is no such file"):
        cluster_address()


def test_without_an_address_there_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADDRESS, raising=False)
    assert open_cluster() is None
