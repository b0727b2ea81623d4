"""What `doctor`, `prune` and `remove` do to a journal and judgements in the database."""

import asyncio
import os
import re
import shutil
import socket
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, text

from eval_pipeline.asking.batches.intents import BatchIntents
from eval_pipeline.asking.journal.codec import FirstAsker, encode_response
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.judge.cache import LIFE_S, JudgementCache, forget_expired, purge_judgements
from eval_pipeline.judge.judgement import Judgement
from eval_pipeline.operations.upkeep import doctor
from eval_pipeline.operations.upkeep.doctor import Finding
from eval_pipeline.operations.upkeep.pruning import JOURNAL_MARGIN_S, prune
from eval_pipeline.operations.upkeep.purging import Removal, purge
from eval_pipeline.operations.upkeep.repairing import repair
from eval_pipeline.operations.upkeep.scrubbing import scrub
from eval_pipeline.state.place import DATABASE_URL, state_place
from eval_pipeline.workspace.workspace import Workspace
from eval_pipeline_plugins.postgres.address import database_address
from eval_pipeline_plugins.postgres.dagster_storage import dagster_url
from eval_pipeline_plugins.postgres.leases import open_leases
from eval_pipeline_tests.servers import STATE_PASSWORD, StatePostgres
from eval_pipeline_tests.support import Lab

pytestmark = pytest.mark.services("postgres")
NOWHERE = Path("/there/is/no/such/file")
VERSION = ModelVersion(name="v", provider="scripted", model="m", batch=True)


def filled(count: int = 1200) -> None:
    """A journal with as many responses, and a batch of the first two."""
    rows = [
        (f"{number:05d}", encode_response(Response(f"text {number}"), FirstAsker("suite", f"v{number % 3}")))
        for number in range(count)
    ]
    with state_place().journal(NOWHERE) as journal:
        asyncio.run(journal.append_many(rows))
        assert BatchIntents(journal.batches, VERSION).claim(["00000", "00001"])


def execute(url: str, statement: str) -> int:
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode()).rowcount


def findings(lab: Lab) -> list[Finding]:
    return list(doctor._journal(Workspace(lab.home)))


def test_every_checksum_is_compared_those_of_batches_too(database_url: str) -> None:
    filled()
    assert state_place().checked_journal(NOWHERE) == (1200, 0, "")
    execute(database_url, "UPDATE eval_pipeline.batches SET model = 'another'")
    assert state_place().checked_journal(NOWHERE) == (1200, 0, "a batch is not as it was written")
    execute(database_url, "UPDATE eval_pipeline.responses SET body = body || 'x'::bytea WHERE key = '01100'")
    assert state_place().checked_journal(NOWHERE) == (1101, 0, "the response under 01100 is not as it was written")


def test_doctor_and_scrub_tell_of_damage_and_repair_keeps_what_is_whole(database_url: str, lab: Lab) -> None:
    filled(5)
    (found,) = findings(lab)
    assert found.fine and found.text.endswith(": 5 responses")
    execute(database_url, "UPDATE eval_pipeline.responses SET body = 'other' WHERE key = '00003'")
    execute(database_url, "UPDATE eval_pipeline.batches SET model = 'another'")
    (found,) = findings(lab)
    assert not found.fine and "the response under 00003" in found.text
    assert ["00003" in told for told in scrub(Workspace(lab.home), lambda _: None)] == [True]
    mended, batches = repair(Workspace(lab.home))
    assert mended.fine and "4 whole responses are kept" in mended.text
    assert not batches.fine and "1 of 1 batches" in batches.text
    assert state_place().checked_journal(NOWHERE) == (4, 0, "")
    assert execute(database_url, "SELECT * FROM eval_pipeline.damaged_responses WHERE key = '00003'") == 1
    assert not any(STATE_PASSWORD in one.text for one in (found, mended, batches))


def test_doctor_tells_who_is_at_work(database_url: str, lab: Lab) -> None:
    def told() -> str:
        (found,) = doctor._database(Workspace(lab.home))
        assert found.fine and STATE_PASSWORD not in found.text
        return found.text

    assert told().endswith(": nobody is at work")
    leases = open_leases()
    leases.process()
    lab.home.root.mkdir(exist_ok=True)
    lab.home.journal.touch()
    assert re.search(rf"process {socket.gethostname()}@\w+ {os.getpid()} \d+ was heard of \d s ago", told())
    assert "(whoever is silent for 60 s counts as gone)" in told()
    assert f"the responses in {lab.home.journal} are neither read nor copied beside it" in told()


def test_prune_removes_what_is_unused_and_old(database_url: str) -> None:
    filled()

    def unused(response: Response) -> bool:
        return response.text.endswith("7")

    later = time.time() + 10
    assert state_place().pruned_journal(NOWHERE, unused, later - 3600, dry_run=False) == 0
    assert state_place().pruned_journal(NOWHERE, unused, later, dry_run=True) == 120
    assert state_place().pruned_journal(NOWHERE, unused, later, dry_run=False) == 120
    assert state_place().checked_journal(NOWHERE) == (1080, 0, "")


def test_a_purge_leaves_what_other_homes_have_paid_for(database_url: str, lab: Lab) -> None:
    filled(6)  # two of each model version, of which this home has evaluated none
    workspace, one, suites = Workspace(lab.home), Removal("v1", purge=True), frozenset({"another suite"})
    assert purge(workspace, Removal("v1", suites, purge=True), [], dry_run=False).responses == 0
    assert purge(workspace, one, [], dry_run=True).responses == 2
    assert purge(workspace, one, [], dry_run=False).responses == 2
    assert state_place().checked_journal(NOWHERE) == (4, 0, "")


def test_a_purge_removes_what_a_repair_set_aside(database_url: str, lab: Lab) -> None:
    filled(6)
    execute(database_url, "UPDATE eval_pipeline.responses SET digest = '' WHERE key = '00001'")
    assert all(found.fine for found in repair(Workspace(lab.home)))
    assert execute(database_url, "SELECT * FROM eval_pipeline.damaged_responses") == 1
    purge(Workspace(lab.home), Removal("v1", purge=True), [], dry_run=False)
    assert execute(database_url, "SELECT * FROM eval_pipeline.damaged_responses") == 0


def test_prune_leaves_what_other_homes_have_paid_for(database_url: str, lab: Lab) -> None:
    filled(6)
    workspace, later = Workspace(lab.home), time.time() + JOURNAL_MARGIN_S + 10
    done = prune(workspace, 1, dry_run=False, now=later)
    assert done.responses is None and "--only-home" in done.left and STATE_PASSWORD not in done.left
    assert state_place().checked_journal(NOWHERE) == (6, 0, "")
    assert prune(workspace, 1, dry_run=False, only_home=True, now=later).responses == 6
    assert state_place().checked_journal(NOWHERE) == (0, 0, "")


def test_purge_leaves_no_byte_in_the_files_of_the_tables(database_url: str, state_server: StatePostgres) -> None:
    filled(600)

    def goes(response: Response, asker: FirstAsker | None) -> bool:
        return asker is not None and asker.model_version == "v0"

    assert state_place().purged_journal(NOWHERE, goes, "v", every_suite=False, dry_run=True) == (200, 0, 1)
    assert state_place().purged_journal(NOWHERE, goes, "v", every_suite=False, dry_run=False) == (200, 0, 1)
    assert state_place().checked_journal(NOWHERE) == (400, 0, "")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute("SELECT pg_relation_filepath('eval_pipeline.responses')").fetchone()
    kept = (state_server.folder / "data" / row[0]).read_bytes()
    assert b'text 1"' in kept
    assert b'text 300"' not in kept


def test_judgements_are_kept_for_others_expire_and_are_purged(database_url: str) -> None:
    now = time.time()
    with closing(JudgementCache(NOWHERE, clock=lambda: now - LIFE_S - 1)) as cache:
        cache.put("old", Judgement(0.0, "no", "former", model="m", prompt_version="1"))
    with closing(JudgementCache(NOWHERE, life_s=2 * LIFE_S)) as cache:
        cache.put("a", Judgement(1.0, "yes", "right", model="m", prompt_version="1"))
        asyncio.run(cache.keep("b", Judgement(0.5, "half", "so so", model="m", prompt_version="1")))
        assert cache.get("old") is not None
    with closing(JudgementCache(NOWHERE, life_s=2 * LIFE_S)) as cache:
        found = asyncio.run(cache.find("a"))
        assert found is not None and found.cached and found.reason == "right"
    execute(database_url, "UPDATE eval_pipeline.judgements SET body = replace(body, 'so so', 'great') WHERE key = 'b'")
    with closing(JudgementCache(NOWHERE, life_s=2 * LIFE_S)) as cache:
        assert cache.get("b") is None  # not as it was written: asked again
    assert forget_expired(NOWHERE, dry_run=True) == 1
    assert forget_expired(NOWHERE) == 1
    assert purge_judgements(NOWHERE, lambda judgement: judgement.reason == "right") == 1
    with closing(JudgementCache(NOWHERE)) as cache:
        assert cache.get("a") is not None


def test_a_server_that_refuses_is_told_in_one_sentence_without_its_password(
    database_url: str, state_server: StatePostgres, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = state_server.url("state1", "wr0ng%pass")
    monkeypatch.setenv(DATABASE_URL, wrong)
    with pytest.raises(StoreError, match=r"cannot be used.*password authentication failed") as told:
        state_place().journal(NOWHERE)
    assert "wr0ng" not in str(told.value)
    assert told.value.__cause__ is None
    (found,) = findings(lab)
    assert not found.fine and "wr0ng" not in found.text


@pytest.mark.skipif(not os.environ.get("CI") and shutil.which("openssl") is None, reason="no openssl")
def test_beyond_this_machine_the_certificate_decides(
    database_url: str, state_server: StatePostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = state_server.restart_with_certificate("pg.example.org")
    kept = tmp_path / "root.crt"
    kept.write_bytes(root.read_bytes())

    def called(name: str) -> str:
        place = database_url.replace("127.0.0.1", name)
        return f"{place}?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={kept}"

    try:
        monkeypatch.setenv(DATABASE_URL, called("pg.example.org"))
        filled(3)
        assert state_place().checked_journal(NOWHERE) == (3, 0, "")
        address = database_address()
        with create_engine(dagster_url(address)).connect() as connection:
            assert connection.execute(text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")).scalar()
        monkeypatch.setenv(DATABASE_URL, called("other.example.org"))
        with pytest.raises(StoreError, match=r"does not match host name") as told:
            state_place().journal(NOWHERE)
        assert STATE_PASSWORD not in str(told.value)
    finally:
        state_server.stop()
        state_server.start()


def test_tables_of_a_newer_version_are_refused(database_url: str) -> None:
    filled(1)
    execute(database_url, "UPDATE eval_pipeline.meta SET version = 99")
    with pytest.raises(StoreError, match=r"newer eval-pipeline \(schema 99"):
        state_place().journal(NOWHERE)
