"""What a purge finds beside the record: journal, batches, judge's cache, predictions, exports, repairs."""

import json
import sqlite3
from contextlib import closing
from unittest.mock import patch

import pytest

from eval_pipeline.asking.batches.intents import insert_batch, make_table
from eval_pipeline.asking.journal.codec import Asker, encode_response
from eval_pipeline.asking.journal.rows import insert
from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.model import Response
from eval_pipeline.judge import Judgement, JudgementCache
from eval_pipeline.operations.purging import Removal
from eval_pipeline.operations.removing import remove
from eval_pipeline.store.tables import RUNS
from eval_pipeline_tests.operations.leaving import MARKER, answer_of, places_of, removed
from eval_pipeline_tests.support import Lab, Puppet, command, number


def test_batches_that_were_handed_in_are_forgotten(home: Lab) -> None:
    with closing(sqlite3.connect(home.home.journal)) as connection:
        make_table(connection)
        for name in ("leaving", "staying"):
            insert_batch(connection, (name, "p", "", "m", name, "2026-03-01T00:00:00", '["key"]', "1", "here", "open"))
        connection.commit()
    told = removed(home, suites=("other",)).purged
    assert told is not None
    assert told.batches == 0, "nothing tells that it asked for that suite"
    told = removed(home).purged
    assert told is not None
    assert told.batches == 1
    with closing(sqlite3.connect(home.home.journal)) as connection:
        assert connection.execute("SELECT intent_id FROM batches").fetchall() == [("staying",)]


def test_what_was_journalled_and_never_recorded_goes_too(home: Lab) -> None:
    """Of a killed run, of another epoch, and of a version that did not note who asked."""
    rows = [("killed", encode_response(Response(f"{MARKER} 1"), Asker("small", "leaving")))]
    rows += [("batch", encode_response(Response(f"{MARKER} 2"), Asker("", "leaving")))]
    rows += [("older", encode_response(Response(f"{MARKER} 3")))]
    rows += [("removed before", encode_response(Response(f"{MARKER} 4"), Asker("small", "long gone")))]
    rows += [("killed too", encode_response(Response("plain words"), Asker("small", "staying")))]
    with closing(sqlite3.connect(home.home.journal)) as connection:
        insert(connection, rows, 0)
        connection.commit()
    purged = removed(home).purged
    assert purged is not None
    assert (purged.responses, purged.of_nobody) == (8 * 3 + 4, 1)
    with closing(sqlite3.connect(home.home.journal)) as connection:
        assert connection.execute("SELECT count(*) FROM responses WHERE key = 'killed too'").fetchone() == (1,)


def test_answers_of_another_one_whose_runs_are_lost_stay(home: Lab) -> None:
    """A run of it was killed, and a repair has set aside what told of its runs."""
    for key in [key for key in home.workspace().record.partitions(RUNS) if key.model_version == "staying"]:
        home.workspace().record.remove(RUNS, key)
    with closing(sqlite3.connect(home.home.journal)) as connection:
        insert(connection, [("killed", encode_response(Response("paid for"), Asker("small", "staying")))], 0)
        connection.commit()
    removed(home)
    with closing(sqlite3.connect(home.home.journal)) as connection:
        assert connection.execute("SELECT count(*) FROM responses WHERE key = 'killed'").fetchone() == (1,)


def test_a_response_that_another_one_shares_stays_until_that_goes(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite()
    lab.versions(*({"name": name, "provider": "puppet", "model": "same"} for name in ("leaving", "staying")))
    puppet.answer = staticmethod(answer_of(MARKER))
    for name in ("leaving", "staying"):
        lab.evaluate(version=name, run_id=name, publish=True)
    assert len(puppet.asked) == 3 * 3
    first = removed(lab).purged
    assert first is not None
    assert first.responses == 0
    second = remove(lab.workspace(), Removal("staying", None, True), dry_run=False).purged
    assert second is not None
    assert second.responses == 3 * 3
    assert places_of(lab.home.root, MARKER) == []


def test_judgements_of_the_cache_go_unless_an_evaluation_holds_them(home: Lab) -> None:
    with closing(JudgementCache(home.home.judgements)) as cache:
        cache.put("one", Judgement(0.0, "different", f"the query says {MARKER}", model="m", prompt_version="1"))
    purged = removed(home).purged
    assert purged is not None
    assert purged.judgements == 1
    assert places_of(home.home.root, MARKER) == [
        place for place in places_of(home.home.root, MARKER) if place.startswith("dagster")
    ]


def test_imported_predictions_go_with_their_entry(lab: Lab) -> None:
    lab.suite()
    lab.versions()
    source = lab.home.data.parent / "predictions.jsonl"
    rows = [{"case_id": "alpha", "turn_index": turn, "response": f"{MARKER}: {number(turn)}"} for turn in (0, 1)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    imported = command("import", "predictions", str(source), "--suite", "small", "--model-version", "leaving")
    assert imported.code == 0, imported.text
    lab.evaluate(version="leaving", publish=True)
    done = removed(lab)
    assert done.entry
    assert done.listed_in is None
    assert places_of(lab.home.root, MARKER) == []
    assert "leaving" not in lab.workspace().model_versions


def test_exports_in_the_home_go_and_no_one_elses(home: Lab) -> None:
    pytest.importorskip("inspect_ai")
    said = command("export", "inspect", "--suite", "small", "--model-version", "leaving")
    assert said.code == 0, said.text
    other = home.home.exports / "small" / "leaving-not"
    other.mkdir()
    (other / "log.eval").write_text("of another one")
    assert list((home.home.exports / "small" / "leaving").iterdir())
    removed(home)
    assert [folder.name for folder in (home.home.exports / "small").iterdir()] == ["leaving-not"]


def test_what_a_repair_set_aside_goes_too(home: Lab) -> None:
    aside = home.home.root / "damaged" / "20260301T000000"
    place = aside / "record" / "errors" / "suite=small" / "model_version=leaving" / "part.parquet"
    place.parent.mkdir(parents=True)
    place.write_text(MARKER)
    (aside / "journal.sqlite-wal").write_text(MARKER)
    removed(home)
    assert not [found for found in places_of(home.home.root, MARKER) if found.startswith("damaged")]


def test_a_journal_that_somebody_reads_is_told(home: Lab) -> None:
    with closing(sqlite3.connect(home.home.journal, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM responses").fetchone()
        with patch("eval_pipeline.asking.journal.purging._PATIENCE_S", 0.1), pytest.raises(StoreError, match="again"):
            removed(home)
    removed(home)
    assert not [found for found in places_of(home.home.root, MARKER) if not found.startswith("dagster")]
