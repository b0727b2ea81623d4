"""What the cases of a suite share is read in another process first, once for each content."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.suites import rehearsal
from eval_pipeline.suites.headers import read_header
from eval_pipeline.suites.rehearsal import rehearse
from eval_pipeline_tests.support import Lab


@pytest.fixture
def suite(lab: Lab) -> Path:
    folder = lab.suite("queries", track="sql")
    (folder / "databases" / "shop").mkdir(parents=True)
    (folder / "databases" / "shop" / "a.sql").write_text("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1);")
    return folder


def test_each_content_is_read_once(lab: Lab, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, original = [], rehearsal.at_arms_length
    monkeypatch.setattr(rehearsal, "at_arms_length", lambda *told: reads.append(1) or original(*told))
    for expected, script in ((1, None), (1, None), (2, "CREATE TABLE t (b INTEGER)"), (2, None)):
        if script:
            (suite / "databases" / "shop" / "a.sql").write_text(script)
        rehearse(read_header(suite))
        assert len(reads) == expected
    assert len(list(lab.home.databases.glob("*.duckdb"))) == 2, "what was built is there for us"


def test_what_is_wrong_is_told_every_time(suite: Path) -> None:
    (suite / "databases" / "shop" / "a.sql").write_text("CREATE TABLE (")
    for _ in range(2):
        with pytest.raises(InputError, match=r"shop/a\.sql: cannot be made into a database: Parser Error"):
            rehearse(read_header(suite))


def test_other_options_than_those_of_the_file_are_read_with(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(rehearsal, "at_arms_length", lambda work, arguments, below: asked.append(arguments))
    source = read_header(suite)
    rehearse(source)
    rehearse(replace(source, header=source.require().model_copy(update={"options": {"schema_form": "full"}})))
    assert asked == [[str(suite), {}], [str(suite), {"schema_form": "full"}]]
    with pytest.raises(InputError, match=r"options\.no_such: unknown field"):
        rehearsal.read_shared(str(suite), {"no_such": 1})


@pytest.mark.parametrize("written", ["2024-05-01", "2024-05-01T12:30:00Z", "'2024-05-01'"])
def test_options_may_hold_what_yaml_takes_for_a_date(
    suite: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    sent: list[list[Any]] = []
    monkeypatch.setattr(rehearsal, "at_arms_length", lambda work, arguments, below: sent.append(arguments))
    (suite / "suite.yaml").write_text(f"{(suite / 'suite.yaml').read_text()}\noptions: {{as_of: {written}}}\n")
    rehearse(read_header(suite))
    (options,) = [json.loads(json.dumps(arguments))[1] for arguments in sent]
    assert options["as_of"] == written.strip("'")


def test_a_crash_is_told_and_not_taken_for_read(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crashes(*_: object) -> None:
        raise InputError([Problem("a.sql", None, "", "ends the process that reads it (SIGSEGV)")])

    monkeypatch.setattr(rehearsal, "at_arms_length", crashes)
    with pytest.raises(InputError, match="SIGSEGV"):
        rehearse(read_header(suite))
    reads = []
    monkeypatch.setattr(rehearsal, "at_arms_length", lambda *told: reads.append(1))
    rehearse(read_header(suite))
    assert reads == [1]
