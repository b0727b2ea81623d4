"""Wrong configurations on a real wire: none of them ends as a plain low accuracy."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline.asking import limits
from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline_tests.fakes.misconfigured import CONVERSATIONS, TURNS, MisconfiguredServer, cases
from eval_pipeline_tests.support import DAY, Lab, Said

GOLDEN = Path(__file__).parents[1] / "golden" / "misconfigurations.yaml"
TABLE: list[dict[str, Any]] = yaml.safe_load(GOLDEN.read_text("utf-8"))
PLANNED = CONVERSATIONS * TURNS
VERSION = "subject"
RUN = ("run", "--no-report", "--eval-date", DAY.isoformat())


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without pauses, a few of them."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-fake-0123456789")
    monkeypatch.setattr(RetryPolicy.pause, "__code__", _pause.__code__)
    monkeypatch.setattr(limits, "_limits", {})


def _pause(self: RetryPolicy, error: Any, retries: int, rng: Any) -> float | None:
    return 0.0 if error.retryable and retries < 2 else None


def prepare(lab: Lab, server: MisconfiguredServer, entry: dict[str, Any]) -> Lab:
    """The suite and the model version of an entry of the table."""
    provider, options = entry["provider"], dict(entry.get("options", {}))
    address = server.url if provider == "http" else f"{server.url}/v1"
    options = {"base_url": address, **({"path": "/ask"} if provider == "http" else {}), **options}
    options["base_url"] = str(options["base_url"]).replace("{url}", server.url)
    lab.suite(cases=cases())
    version = {"name": VERSION, "provider": provider, "options": options, "max_recovery_attempts": 0, "concurrency": 8}
    version |= {"deadline_s": 10} | ({"model": "m"} if provider == "openai" else {})
    lab.versions(version | entry.get("version", {}))
    return lab


def ran(lab: Lab, server: MisconfiguredServer, entry: dict[str, Any], *more: str) -> Said:
    return prepare(lab, server, entry).cli(*RUN, *more)


def entry_of(name: str) -> dict[str, Any]:
    return next(entry for entry in TABLE if entry["name"] == name)


def test_the_table_has_at_least_thirty() -> None:
    assert len({entry["name"] for entry in TABLE}) == len(TABLE) >= 30


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry["name"].replace(" ", "-"))
def test_none_ends_as_a_plain_low_accuracy(entry: dict[str, Any], lab: Lab) -> None:
    with MisconfiguredServer(entry["server"]) as server:
        said = ran(lab, server, entry)
    told = " ".join(said.err.split())
    for part in entry.get("says", ()):
        assert part in told, told
    match entry["ends"]:
        case "stopped":
            assert said.code == 1
            assert "stopped after the first" in told
            assert f"of {PLANNED} turns" in told
            assert "--no-canary" in told
            assert len(said.err.splitlines()) == 1
            assert server.asked <= 3 * 23  # a few conversations, and retries
        case "fatal":
            assert said.code == 1
            assert len(said.err.splitlines()) == 1
        case "told":
            assert "warning: small, subject: this looks like the configuration" in told
        case "understood":
            assert (said.code, told) == (0, "")
            assert lab.sql("SELECT count(*), bool_and(correct) FROM turn_results") == [(PLANNED, True)]
        case other:
            pytest.fail(f"the table has no end '{other}'")
    assert "cannot be reached" not in told
