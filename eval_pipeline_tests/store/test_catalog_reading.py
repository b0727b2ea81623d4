"""A catalog that is damaged says so and is made anew; whoever reads one changes nothing and reads nothing else."""

import re
import shutil
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.store.catalog import checking
from eval_pipeline.store.catalog.checking import catalog_problems
from eval_pipeline.store.catalog.manifests import CatalogPart
from eval_pipeline.store.published.publish import publish, publish_full
from eval_pipeline.store.published.query import connect_read_only, run_query
from eval_pipeline.store.record import Record
from eval_pipeline.store.tables import METRICS, all_tables
from eval_pipeline.view.published import PublishedStore
from eval_pipeline_tests.store.catalogs import Full, State, parts_of, state
from eval_pipeline_tests.store.samples import TRACKS, ask, key_of, put
from eval_pipeline_tests.store.test_manifests import newer

pytestmark = pytest.mark.usefixtures("catalog")
COPYING = "COPY (SELECT 1) TO '{part}'"


@pytest.fixture(scope="module")
def small(full_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that no test changes."""
    home = tmp_path_factory.mktemp("small") / "home"
    shutil.copytree(full_home.with_name("kept"), home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_STORE", "catalog")
        publish(Record(home / "record"), home / "eval.duckdb", TRACKS)
    return home / "eval.duckdb"


@pytest.fixture(scope="module")
def sound(small: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in files_of(small)}


@pytest.fixture(scope="module")
def places(small: Path) -> dict[str, object]:
    """What queries that are refused name."""
    part = next((small.parent / "catalog" / "parts").glob("*/*.parquet"))
    hidden = run_query(small, f"SELECT json_serialize_sql($$WITH x AS ({COPYING.format(part=part)}) FROM x$$) AS made")
    made = hidden["made"][0].as_py().replace("'", "''")
    told = {"hidden": made, "hidden_twice": made.replace("'", "''")}
    return {"part": part, "folder": part.parent, "store": small, **told}


def test_any_duckdb_reads_it_and_every_table_has_its_part(full: Full) -> None:
    _, out = full
    with duckdb.connect(str(out), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM turn_results").fetchone() == (6,)
        assert len(connection.execute("FROM leaderboard('finqa')").fetchall()) == 2
    tables = {place.split("/")[0] for place in parts_of(out)}
    assert tables == {*(table.name for table in all_tables(TRACKS)), "meta.files"}


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("catalog", "is not the catalog of its manifests"),
        ("manifest", "the manifest .* is damaged"),
        ("memo", None),
        ("part", "metrics/.* is damaged"),
    ],
)
def test_damage_is_told_and_mended(full: Full, before: State, what: str, problem: str | None) -> None:
    record, out = full
    folder = out.parent / "catalog"
    place = {
        "catalog": out,
        "manifest": folder / "manifests" / "suite=finqa.manifest",
        "memo": out.with_name("eval.duckdb.lock"),
        "part": next((folder / "parts" / "metrics").glob("*.parquet")),
    }[what]
    place.chmod(0o644)
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)
    told = list(catalog_problems(out, TRACKS))
    assert bool(told) == (problem is not None)
    assert all(re.search(problem or "", sentence) for sentence in told)
    (folder / "manifests" / ".of a killed publisher.tmp").touch()
    (publish_full if what == "part" else publish)(record, out, TRACKS)
    assert not list(catalog_problems(out, TRACKS))
    assert not list(folder.glob("manifests/.*"))
    assert state(out) == before


def test_a_manifest_of_a_newer_version_is_left_alone(full: Full) -> None:
    record, out = full
    place = out.parent / "catalog" / "manifests" / "suite=finqa.manifest"
    written = newer(place.read_bytes())
    place.write_bytes(written)
    with pytest.raises(StoreError, match="was written by a newer eval-pipeline"):
        publish(record, out, TRACKS)
    assert place.read_bytes() == written
    (told,) = catalog_problems(out, TRACKS)
    assert "was written by a newer eval-pipeline" in told
    publish_full(record, out, TRACKS)
    assert not list(catalog_problems(out, TRACKS))


@pytest.mark.always
def test_a_query_that_reads_a_damaged_part_says_so(full: Full) -> None:
    _, out = full
    place = next((out.parent / "catalog" / "parts" / "turn_results").glob("*.parquet"))
    sound = place.read_bytes()
    place.chmod(0o644)
    for data in (sound[:100] + bytes(20) + sound[120:], sound[:-100] + b"\xff" * 92 + sound[-8:]):
        place.write_bytes(data)
        with pytest.raises(StoreError, match=rf"{place.name} is damaged; `eval-pipeline publish --full` makes it anew"):
            run_query(out, "FROM turn_results")
        with pytest.raises(StoreError, match=rf"{place.name} is damaged"), PublishedStore(out).look() as look:
            look.rows("FROM turn_results")
    place.write_bytes(sound)
    with pytest.raises(UsageError, match="nothing_like_it"):
        run_query(out, "SELECT nothing_like_it FROM turn_results")


@pytest.mark.always
def test_a_publisher_at_work_is_not_taken_for_damage(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    record, out = full
    read = checking.wrong
    others = iter([0.5])

    def wrong(part: CatalogPart, parts: Path) -> str:
        for value in others:
            put(record, METRICS, key_of("beta"), value=[value])
            publish(record, out, TRACKS)
        return read(part, parts)

    monkeypatch.setattr(checking, "wrong", wrong)
    assert list(catalog_problems(out, TRACKS)) == []
    assert ask(out, "SELECT DISTINCT value FROM metrics WHERE model_version = 'beta'") == [(0.5,)]


def test_lost_parts_are_told_and_made_again(full: Full, before: State) -> None:
    record, out = full
    whole = parts_of(out)
    next((out.parent / "catalog" / "parts" / "suites").glob("*.parquet")).unlink()
    assert "is missing" in next(catalog_problems(out, TRACKS))
    with pytest.raises(StoreError, match="publish --full"):
        run_query(out, "FROM suites")
    shutil.rmtree(out.parent / "catalog")
    with pytest.raises(StoreError, match=r"catalog/parts, which .* reads, is missing; `eval-pipeline publish --full`"):
        connect_read_only(out)
    publish(record, out, TRACKS)
    assert parts_of(out) == whole and state(out) == before


def test_a_home_may_be_named_by_a_link(full: Full, tmp_path: Path) -> None:
    _, out = full
    link = tmp_path / "link"
    link.symlink_to(out.parent)
    assert ask(link / out.name, "SELECT sum(value) FROM metrics") == [(6.0,)]
    still = out.stat()
    assert publish(Record(link / "record"), link / out.name, TRACKS).tables == ()
    assert out.stat() == still


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{part}'",
        "COPY (SELECT 1) TO '{part}' (USE_TMP_FILE false)",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{part}'",
        "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{part}'",
        "PREPARE p AS COPY (SELECT 1) TO '{part}'; EXECUTE p",
        "SELECT 1; COPY (SELECT 1) TO '{store}'",
        "EXPLAIN (ANALYZE /*) SELECT 1 --*/) COPY (SELECT 1) TO '{part}'",
        "/* EXPLAIN (*/ EXPLAIN ANALYZE COPY (SELECT 1) TO '{part}' -- */ SELECT 1",
        "WITH x AS (COPY (SELECT 1) TO '{part}') FROM x",
        "WITH x AS (copy/**/(SELECT 1) TO '{store}') SELECT 1",
        "WITH x AS (COPY (SELECT 1) TO '{part}') PIVOT metrics ON name USING count(*)",
        "CREATE TEMP TABLE t AS WITH x AS (COPY (SELECT 1) TO '{part}') FROM x",
        "FROM json_execute_serialized_sql(json_serialize_sql($$WITH x AS (COPY (SELECT 1) TO '{part}') FROM x$$))",
        "FROM json_execute_serialized_sql('{hidden}')",
        "EXPLAIN ANALYZE FROM json_execute_serialized_sql('{hidden}')",
        "PRAGMA json_execute_serialized_sql('{hidden}')",
        """CALL main . "JSON_execute_serialized_sql" /**/ ('{hidden}')""",
        "PIVOT (FROM json_execute_serialized_sql('{hidden}')) ON Count USING sum(Count)",
        "FROM query('FROM json_execute_serialized_' || 'sql(''{hidden_twice}'')')",
        """CREATE TEMP MACRO m(x) AS TABLE FROM "query"(x); FROM m('SELECT 1')""",
        "IMPORT DATABASE '{folder}'",
        "UPDATE EXTENSIONS",
        "EXPORT DATABASE '{folder}'",
        "ATTACH '{folder}/other.duckdb'",
        "SELECT * FROM read_text('/etc/passwd')",
        "FROM read_text('{folder}/../../eval.duckdb.lock')",
        "SET allowed_directories = ['/']",
        "DELETE FROM metrics",
    ],
)
def test_queries_change_nothing_and_read_nothing_else(
    small: Path, sound: dict[Path, bytes], places: dict[str, object], sql: str
) -> None:
    with pytest.raises(UsageError):
        run_query(small, sql.format(**places))
    assert {path: path.read_bytes() for path in files_of(small)} == sound


def test_queries_may_explain_and_have_tables_of_their_own(small: Path) -> None:
    assert run_query(small, "EXPLAIN ANALYZE SELECT 1").num_rows == 1
    assert run_query(small, "CREATE TEMP TABLE mine AS SELECT 1 AS one; FROM mine").to_pylist() == [{"one": 1}]
    assert run_query(small, "SELECT 'COPY' AS \"copy\", 1 AS query -- COPY").to_pylist() == [
        {"copy": "COPY", "query": 1}
    ]
    assert run_query(small, "PIVOT (SELECT 'a' AS a, 2 AS b) ON a USING sum(b)").num_rows == 1
    assert run_query(small, "DESCRIBE suites").num_rows == run_query(small, "SUMMARIZE suites").num_rows


def files_of(out: Path) -> list[Path]:
    return [path for path in [out, *(out.parent / "catalog").rglob("*")] if path.is_file()]
