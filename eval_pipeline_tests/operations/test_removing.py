"""Leaving: what a removal takes, what it leaves, and that after a purge no byte of a response is found anywhere."""

import gc
import json
import random
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from unittest.mock import patch

import dagster as dg
import duckdb
import pyarrow.parquet as pq
import pytest
from dagster._core.storage.tags import PARTITION_NAME_TAG

from eval_pipeline.asking.batches.sqlite import insert_batch, make_table
from eval_pipeline.asking.journal.codec import FirstAsker, encode_response
from eval_pipeline.asking.journal.rows import insert
from eval_pipeline.chain.stage import Chain
from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.model import Json, Partition, Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline.judge.cache import JudgementCache
from eval_pipeline.judge.judgement import Judgement
from eval_pipeline.operations.upkeep import removing
from eval_pipeline.operations.upkeep.completing import complete_left
from eval_pipeline.operations.upkeep.keeping import compare, deliver, publish_comparisons
from eval_pipeline.operations.upkeep.purging import Purged, Removal, _Stays
from eval_pipeline.operations.upkeep.removing import Removed, _folders, is_interrupted, remove
from eval_pipeline.providers import registry
from eval_pipeline.providers.base import Call, Environment
from eval_pipeline.reports.nights.night import read_night
from eval_pipeline.reports.nights.page import write_night
from eval_pipeline.store.tables import RUNS
from eval_pipeline.workspace.homes.kept import keep
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.runs import COMPLETE, partition_lock, record_run
from eval_pipeline.workspace.workspace import Silent
from eval_pipeline_tests.killing import killed_at
from eval_pipeline_tests.seeds import SEED
from eval_pipeline_tests.support import DAY, Lab, Puppet, case, command, number, response

MARKER = "zebra-quartz-7391"
"""What only the responses of `leaving` say."""
NEXT = DAY + timedelta(days=1)
WITH_TEXT = "unreadable, it says {}"
SAID = {"leaving": MARKER, "staying": "plain words"}


def places_of(home: Path, marker: str) -> list[str]:
    """Files below a folder that hold the text, whatever form they have: bytes, Parquet, DuckDB, SQLite, zip."""
    return sorted({str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and _holds(path, marker)})


def _holds(path: Path, marker: str) -> bool:
    data = path.read_bytes()
    wide = (marker.encode(), marker.encode("utf-16-le"))
    return any(text in data for text in wide) or any(marker in text for text in _texts(path, data))


def _texts(path: Path, data: bytes) -> Iterator[str]:
    if data[:4] == b"PAR1":
        yield str(pq.ParquetFile(path).read().to_pylist())
    elif data[8:12] == b"DUCK":
        with duckdb.connect(str(path), read_only=True) as store:
            for schema, name in store.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall():
                yield str(store.execute(f'SELECT * FROM "{schema}"."{name}"').fetchall())
    elif data[:2] == b"PK":
        with zipfile.ZipFile(path) as book:
            yield from (book.read(name).decode("utf-8", "replace") for name in book.namelist())
    elif data[:15] == b"SQLite format 3":
        with closing(sqlite3.connect(path)) as connection:
            yield "\n".join(connection.iterdump())


class Named(Puppet):
    """Says what only the model version of that name does."""

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        self.name = version.name

    def request(self, call: Call) -> Json:
        return {**super().request(call), "model": self.name}

    async def generate(self, call: Call) -> Response:
        Puppet.asked.append(call)
        return response(WITH_TEXT.format(SAID[self.name]))


@pytest.fixture(autouse=True)
def named(puppet: type[Puppet], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PROVIDERS, "named", f"{__name__}:Named")


@pytest.fixture
def home(lab: Lab, module_folder: Path) -> Lab:
    """`leaving` and `staying`, each evaluated on two suites, the first on two nights, one of them with reports."""

    def make(lab: Lab) -> None:
        lab.suite()
        lab.suite("other", [case("gamma", ("50", 50.0), ("add(50, 7)", 57.0))])
        evaluated(lab, "small", DAY)
        evaluated(lab, "small", NEXT, "--fresh", "--no-report")
        evaluated(lab, "other", DAY, "--no-report")

    return lab.made_once(module_folder / "two", make)


@pytest.fixture
def one_suite(lab: Lab, module_folder: Path) -> Lab:
    """The same with one turn, on one night."""

    def make(lab: Lab) -> None:
        lab.suite(cases=[case("gamma", ("50", 50.0))])
        evaluated(lab, "small", DAY)

    return lab.made_once(module_folder / "one", make)


def evaluated(lab: Lab, suite: str, day: date, *more: str) -> None:
    lab.versions(*({"name": name, "provider": "named", "model": name} for name in SAID))
    said = command("run", "--suite", suite, "--eval-date", str(day), *more)
    assert said.code in {0, 1}, said.text


def removed(lab: Lab, *, suites: tuple[str, ...] = (), purge: bool = True, dry_run: bool = False) -> Removed:
    removal = Removal("leaving", frozenset(suites) or None, purge)
    return remove(lab.workspace(), removal, dry_run=dry_run)


def purged(lab: Lab) -> Purged:
    found = removed(lab).purged
    assert found is not None
    return found


def names_in(lab: Lab, table: str) -> set[str]:
    columns = {"model_comparisons": "unnest([model_a, model_b])"}
    return {name for (name,) in lab.sql(f"SELECT DISTINCT {columns.get(table, 'model_version')} FROM {table}")}


def kinds(lab: Lab, marker: str) -> set[str]:
    """Where in the home a text is."""
    return {place.split("/")[0] for place in places_of(lab.home.root, marker)}


def asked_again(lab: Lab, name: str) -> bool:
    """Whether a run of an evaluation asks the model."""
    Puppet.reset()
    assert command("run", "--suite", "small", "--model-version", name, "--eval-date", str(NEXT)).code in {0, 1}
    return bool(Puppet.asked)


def journalled(lab: Lab, key: str) -> bool:
    with closing(sqlite3.connect(lab.home.journal)) as connection:
        return bool(connection.execute("SELECT 1 FROM responses WHERE key = ?", (key,)).fetchall())


def pages_of_nights(home: Lab) -> Callable[[], None]:
    """Writes pages of nights; what is returned looks at them after the removal.

    Those of other model versions stay, without it; those with nothing else go, and earlier ones are not touched.
    """
    reports = home.home.reports
    pages = {day: write_night(read_night(home.workspace().record, day), reports) for day in (DAY, NEXT)}
    assert all("leaving" in page.read_text() and "staying" in page.read_text() for page in pages.values())
    alone, earlier = reports / "nights" / "2027-01-01.html", reports / "nights" / "2020-01-01.html"
    for page in (alone, earlier, reports / "nights" / "leaving.html"):
        page.write_text("small · leaving")

    def look() -> None:
        for page in pages.values():
            text = page.read_text()
            assert "leaving" not in text
            assert "small · staying" in text
        assert not alone.exists()
        assert earlier.exists(), "it cannot name an evaluation of that model version"
        assert (reports / "nights" / "leaving.html").exists(), "no page of a night"

    return look


def exported(home: Lab) -> None:
    """An export, and one of another model version."""
    said = command("export", "folder", "--suite", "small", "--model-version", "leaving")
    assert said.code == 0, said.text
    assert any(place.startswith("exports/small/leaving/") for place in places_of(home.home.root, MARKER))
    other = home.home.exports / "small" / "leaving-not"
    other.mkdir()
    (other / "log.eval").write_text("of another one")


def add_to_journal(home: Lab) -> None:
    """Of a killed run, of another epoch, and of a version that did not note who asked; never recorded. And batches."""
    rows = [("killed", encode_response(Response(f"{MARKER} 1"), FirstAsker("small", "leaving")))]
    rows += [("batch", encode_response(Response(f"{MARKER} 2"), FirstAsker("", "leaving")))]
    rows += [("older", encode_response(Response(f"{MARKER} 3")))]
    rows += [("removed before", encode_response(Response(f"{MARKER} 4"), FirstAsker("small", "long gone")))]
    rows += [("killed too", encode_response(Response("plain words"), FirstAsker("small", "staying")))]
    with closing(sqlite3.connect(home.home.journal)) as connection:
        insert(connection, rows, 0)
        make_table(connection)
        for name in ("leaving", "staying"):
            insert_batch(connection, (name, "p", "", "m", name, "2026-03-01T00:00:00", '["key"]', "1", "here", "open"))
        connection.commit()


def set_aside(home: Lab) -> None:
    """What a repair set aside."""
    aside = home.home.root / "damaged" / "20260301T000000"
    place = aside / "record" / "errors" / "suite=small" / "model_version=leaving" / "part.parquet"
    place.parent.mkdir(parents=True)
    place.write_text(MARKER)
    (aside / "journal.sqlite-wal").write_text(MARKER)


def keep_results(home: Lab) -> None:
    """What is kept of answers, finished or not, and of gold."""
    for name in ("outcome-1.json", "evidence-1.json", "validation-1.json", ".made-1"):
        keep(home.home.expected / name, MARKER)
    keep(home.home.expected / "doubts-1.json", "plain words")


def test_a_purge_leaves_no_byte_of_the_responses_anywhere_and_what_stays_is_as_it_was(home: Lab) -> None:
    look = pages_of_nights(home)
    exported(home)
    add_to_journal(home)
    set_aside(home)
    keep_results(home)
    with closing(JudgementCache(home.home.judgements)) as cache:
        cache.put("one", Judgement(0.0, "different", f"the query says {MARKER}", model="m", prompt_version="1"))
    everywhere = {"record", "reports", "eval.duckdb", "journal.sqlite"}
    assert everywhere | {"exports", "damaged", "expected"} <= kinds(home, MARKER), "the search finds it where it is"
    before = home.sql("SELECT * FROM attempts WHERE model_version = 'staying' ORDER BY ALL")
    done = purged(home)
    assert places_of(home.home.root, MARKER) == []
    assert {*everywhere, "expected"} <= kinds(home, "plain words"), "what the other one said is still there"
    for table in ("attempts", "turn_results", "trends", "model_versions", "runs", "model_comparisons"):
        assert names_in(home, table) <= {"staying"}, table
    assert not any(home.home.commands.glob("*.jsonl"))
    assert home.sql("SELECT * FROM attempts ORDER BY ALL") == before
    look()
    assert [folder.name for folder in (home.home.exports / "small").iterdir()] == ["leaving-not"]
    assert (done.responses, done.of_nobody, done.batches, done.judgements) == (8 * 3 + 4, 1, 1, 1)
    assert journalled(home, "killed too")
    with closing(sqlite3.connect(home.home.journal)) as connection:
        assert connection.execute("SELECT intent_id FROM batches").fetchall() == [("staying",)]
    assert not asked_again(home, "staying")


def test_what_is_refused_or_only_planned_changes_nothing_and_a_part_or_the_journal_may_stay(home: Lab) -> None:
    add_to_journal(home)
    record, before = home.record_files(), _times(home)
    for arguments, sentence in (
        (("leavin", "--yes"), "the home has nothing of a model version 'leavin'; known: leaving, staying"),
        (("leaving",), "--yes continues without asking"),
    ):
        said = command("remove", *arguments)
        assert (said.code, sentence in said.err) == (2, True), said.text
    said = command("remove", "leaving", "--purge", "--dry-run")
    assert said.code == 0, said.text
    told = removed(home, dry_run=True)
    assert told.purged is not None
    assert told.purged.responses == 8 * 3 + 4, "8 turns in all, each tried three times"
    assert f"would be removed: 3 evaluations, {told.files:,} files" in said.out
    assert "28 responses and 1 batch of" in said.out
    after = _times(home)
    assert {path.suffix for path in before.keys() ^ after.keys()} <= {".lock"}
    changed = {path for path in before.keys() & after.keys() if before[path] != after[path]}
    assert not [path for path in changed if path.suffix not in {".lock", ".db"}]
    _nothing_goes_while_a_run_is_at_it(home)
    assert home.record_files() == record

    done = removed(home, suites=("other",))
    assert done.partitions == (Partition("other", "leaving", DAY),)
    assert done.purged is not None
    assert done.purged.batches == 0, "nothing tells that it asked for that suite"
    assert set(home.sql("SELECT DISTINCT suite, model_version FROM turn_results")) == {
        ("small", "leaving"), ("small", "staying"), ("other", "staying"),
    }  # fmt: skip
    assert "leaving" in names_in(home, "model_versions")
    assert not asked_again(home, "leaving"), "the responses of the suite that stays are still in the journal"

    planned = removed(home, purge=False, dry_run=True)
    done = removed(home, purge=False)
    assert done == planned
    assert (done.purged, len(done.partitions)) == (None, 2)
    assert names_in(home, "turn_results") == {"staying"}
    assert kinds(home, MARKER) - {"eval.duckdb"} == {"journal.sqlite"}, "what was paid for"
    removed(home)
    assert places_of(home.home.root, MARKER) == [], "a purge takes what an earlier removal left"


def _times(lab: Lab) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in lab.home.root.rglob("*") if path.is_file()}


def _nothing_goes_while_a_run_is_at_it(home: Lab) -> None:
    with (
        partition_lock(home.workspace(), Partition("small", "leaving", NEXT), Silent()),
        pytest.raises(UsageError, match=r"a run is at small · leaving · 2026-03-02; .*nothing has been removed"),
    ):
        removed(home, purge=False)
    record_run(home.workspace(), Partition("small", "leaving", DAY), "another", scope="full", status="running")
    with pytest.raises(UsageError, match="a run is at small · leaving · 2026-03-01"):
        removed(home, purge=False)
    record_run(home.workspace(), Partition("small", "leaving", DAY), "another", status=COMPLETE)
    with (
        partition_lock(home.workspace(), Partition("small", "staying", NEXT), Silent()),
        pytest.raises(UsageError, match="a run is asking models, and the journal cannot be purged beside it"),
    ):
        removed(home)


STEPS = (
    ("eval_pipeline.store.record.Record", "remove"),
    ("eval_pipeline.operations.upkeep.removing", "remove_folder"),
    ("eval_pipeline.operations.upkeep.removing", "forget_acknowledged"),
    ("eval_pipeline.operations.upkeep.removing", "compare"),
    ("eval_pipeline.operations.upkeep.removing", "publish_keys"),
    ("eval_pipeline.operations.upkeep.removing", "deliver"),
    ("eval_pipeline.operations.upkeep.removing", "tell_nights_again"),
    ("eval_pipeline.state.place.StatePlace", "purged_journal"),
    ("eval_pipeline.operations.upkeep.purging", "purge_judgements"),
    ("eval_pipeline.operations.upkeep.removing", "_forget"),
)
"""What a removal does one after the other."""


def publish_only(chain: Chain, inputs: Inputs, *, with_report: bool) -> None:
    assert with_report
    deliver(chain, inputs, with_report=False)


AFTER = {"remove", "remove_folder", "compare", "_forget"}
"""Steps that are many calls, and the last one: after the first call of the others the next step begins."""


KILLS = [(*step, done) for step in STEPS for done in (False, True) if not done or step[1] in AFTER]


@pytest.mark.parametrize("kills", [random.Random(SEED).sample(KILLS, 2), pytest.param(KILLS, marks=pytest.mark.soak)])
def test_a_removal_that_is_killed_goes_on_where_it_was(
    kills: list[tuple[str, str, bool]], one_suite: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before some of its steps, or after it, the next command brings it to the same end."""
    home = one_suite
    kept = shutil.copytree(home.home.root, tmp_path / "kept")
    # Most of the time goes to what is written for people.
    monkeypatch.setattr(removing, "deliver", publish_only)
    for place, name, done in kills:
        shutil.rmtree(home.home.root)
        shutil.copytree(kept, home.home.root)
        with killed_at(f"{place}.{name}", done=done):
            removed(home)
        assert is_interrupted(home.workspace(), "leaving")
        assert complete_left(home.workspace()) == []
        assert places_of(home.home.root, MARKER) == [], (name, done, SEED)
        assert names_in(home, "turn_results") == names_in(home, "trends") == {"staying"}, (name, done, SEED)
        assert not any(home.home.commands.glob("*.jsonl"))


@pytest.mark.always
def test_what_dagster_keeps_goes_with_the_second_call_where_the_first_could_not(lab: Lab) -> None:
    home = lab
    lab.suite(cases=[case("gamma", ("50", 50.0))])
    evaluated(lab, "small", DAY, "--no-report")
    home.versions({"name": "staying", "provider": "named", "model": "staying"})
    with open_instance(home.home) as instance:
        instance.add_dynamic_partitions(DIMENSION, ["leaving", "staying"])
        instance.add_run(dg.DagsterRun("all_suites", tags={PARTITION_NAME_TAG: "leaving"}))
    runs = next((home.home.dagster / "history").glob("runs.db"))
    with closing(sqlite3.connect(runs)) as connection:
        assert connection.execute("SELECT count(*) FROM runs WHERE partition = 'leaving'").fetchone() == (1,)
    refused = StoreError("it is in use")
    with patch("eval_pipeline.defs.running.removing.write_anew", side_effect=refused):
        said = command("remove", "leaving", "--purge", "--yes")
    assert (said.code, "it is in use" in said.err) == (2, True), said.text
    del refused  # its traceback holds the lock of the note, which goes with the process
    gc.collect()
    assert command("remove", "leaving", "--purge", "--yes").code == 0
    assert b"leaving" not in runs.read_bytes()
    with open_instance(home.home) as instance:
        assert instance.get_dynamic_partitions(DIMENSION) == ["staying"]
    assert command("remove", "leaving", "--purge", "--yes").code == 2, "nothing is left"


def test_answers_of_another_one_whose_runs_are_lost_stay_and_a_journal_that_somebody_reads_is_told(
    one_suite: Lab,
) -> None:
    """A run of it was killed, and a repair has set aside what told of its runs."""
    home = one_suite
    for key in [key for key in home.workspace().record.partitions(RUNS) if key.model_version == "staying"]:
        home.workspace().record.remove(RUNS, key)
    with closing(sqlite3.connect(home.home.journal)) as connection:
        insert(connection, [("killed", encode_response(Response("paid for"), FirstAsker("small", "staying")))], 0)
        connection.commit()
    with closing(sqlite3.connect(home.home.journal, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM responses").fetchone()
        with patch("eval_pipeline.asking.journal.purging._PATIENCE_S", 0.1), pytest.raises(StoreError, match="again"):
            removed(home)
    removed(home)
    assert places_of(home.home.root, MARKER) == []
    assert journalled(home, "killed")


def test_a_response_that_another_one_shares_stays_until_that_goes(lab: Lab, puppet: type[Puppet]) -> None:
    lab.suite()
    lab.versions(*({"name": name, "provider": "puppet", "model": "same"} for name in SAID))
    puppet.answer = staticmethod(lambda call: WITH_TEXT.format(MARKER))
    for name in ("leaving", "staying"):
        lab.evaluate(version=name, run_id=name, publish=True)
    assert len(puppet.asked) == 3 * 3
    assert purged(lab).responses == 0
    second = remove(lab.workspace(), Removal("staying", None, True), dry_run=False).purged
    assert second is not None
    assert second.responses == 3 * 3
    assert places_of(lab.home.root, MARKER) == []


@pytest.mark.always
def test_imported_predictions_go_with_their_entry(lab: Lab) -> None:
    lab.suite()
    lab.versions()
    source = lab.home.data.parent / "predictions.jsonl"
    rows = [{"case_id": "alpha", "turn_index": turn, "response": f"{MARKER}: {number(turn)}"} for turn in (0, 1)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    imported = command("import", "predictions", str(source), "--suite", "small", "--model-version", "leaving")
    assert imported.code == 0, imported.text
    lab.evaluate(version="leaving", publish=True)
    compare(suite := Inputs(lab.workspace(), "small"))
    publish_comparisons(suite)
    assert lab.sql(told := "SELECT model_version FROM trends") == [("leaving",)]
    done = removed(lab)
    assert lab.sql(told) == []
    assert done.entry
    assert done.listed_in is None
    assert places_of(lab.home.root, MARKER) == []
    assert "leaving" not in lab.workspace().model_versions


@pytest.mark.parametrize(
    ("asker", "shared", "is_free"),
    [
        (FirstAsker("s", "a"), False, True),
        (FirstAsker("other", "a"), False, True),
        (FirstAsker("s", "b"), False, False),
        (FirstAsker("other", "b"), False, True),
        (FirstAsker("", "b"), False, False),
        (FirstAsker("", "c"), False, True),
        (FirstAsker("s", "c"), True, False),
        (None, False, True),
        (None, True, False),
    ],
)
def test_a_response_stays_while_another_that_asked_for_it_is_there(
    asker: FirstAsker | None, shared: bool, is_free: bool
) -> None:
    """Of `b` there is an evaluation of the suite `s`, of no other; `a` is removed, `c` is gone."""
    stays = _Stays.__new__(_Stays)
    stays._shared, stays._places, stays._names = shared, {("s", "b")}, {"b"}
    assert stays.is_free(asker, Removal("a", frozenset({"s"}))) == is_free


@pytest.mark.parametrize(
    ("suites", "expected"),
    [(None, {("s", "a"), ("t", "a")}), (frozenset({"s"}), {("s", "a")}), (frozenset({"none"}), set[tuple[str, str]]())],
)
def test_the_folders_of_a_model_version_are_those_of_its_name_and_suites(
    lab: Lab, suites: frozenset[str] | None, expected: set[tuple[str, str]]
) -> None:
    places = [(suite, version) for suite in "st" for version in "ab"]
    for suite, version in places:
        (lab.home.record / "turn_results" / f"suite={suite}" / f"model_version={version}").mkdir(parents=True)
        (lab.home.reports / suite / version).mkdir(parents=True)
    found = [*_folders(lab.workspace(), Removal("a", suites))]
    told = {(folder.parent.name.removeprefix("suite="), folder.name.removeprefix("model_version=")) for folder in found}
    assert told == expected
    assert len(found) == 2 * len(expected), "in the record, and among the reports"
