"""Homes that 0.1.0 wrote: their files do not say which code made them."""

from pathlib import Path

import pytest

from eval_pipeline.store.tables import all_tables
from eval_pipeline.workspace.tabled.track_tables import further_tables
from eval_pipeline_tests.support import Lab, Puppet


def as_0_1_0_wrote_it(lab: Lab) -> None:
    """Takes from every file what 0.1.0 did not write into its footer, and adds what it did."""
    record = lab.workspace().record
    for table in (found for published in all_tables(further_tables()) for found in published.record_tables()):
        for key in record.partitions(table):
            header, rows = record.header(table, key), record.read(table, key).to_pydict()
            assert header is not None
            kept = {n: v for n, v in header.made_from.items() if n not in {"code", "libraries", "answers"}}
            with record.writer(table, key, kept | {"stage": "1", "parser": "1"}) as writer:
                writer.write({column.name: rows[column.name] for column in table.columns})


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


@pytest.fixture
def old(small: Lab, module_folder: Path) -> Lab:
    return small.made_once(module_folder / "old", evaluate)


def evaluate(small: Lab) -> None:
    small.versions(*({"name": name, "provider": "puppet"} for name in ("puppet", "other")))
    for name in ("puppet", "other"):
        small.evaluate(version=name, publish=True)
    as_0_1_0_wrote_it(small)


def test_its_evaluations_are_published_and_answer(old: Lab) -> None:
    assert old.cli("publish").code == 0  # which compares, too
    before = old.store_contents()
    old.home.store.unlink()
    assert old.cli("publish", "--full").code == 0
    assert old.store_contents() == before


def test_they_are_compared_with_nothing_until_they_are_scored_again(old: Lab, puppet: type[Puppet]) -> None:
    asked = len(puppet.asked)
    refused = old.cli("compare", "puppet", "other")
    assert refused.code == 1 and "eval-pipeline rescore --suite small" in refused.out
    done = old.cli("rescore")
    assert done.code == 0, done.text
    assert old.cli("compare", "puppet", "other").code == 0
    assert len(puppet.asked) == asked, "somebody was asked"
    assert {by for (by,) in old.sql("SELECT DISTINCT scored_by FROM superseded_statistics")} == {"unknown code"}


def test_a_run_of_the_same_date_asks_nobody(old: Lab, puppet: type[Puppet]) -> None:
    asked = len(puppet.asked)
    done = old.cli("run", "--no-report", "--eval-date", "2026-03-01")
    assert done.code == 0, done.text
    assert len(puppet.asked) == asked
    assert old.cli("compare", "puppet", "other").code == 0
