"""Values that evaluations share: found under their own key only, unless a limit has stopped something on the way."""

import os
import time
from pathlib import Path

import pytest

from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Json
from eval_pipeline.core.system.stopped import note_stopped
from eval_pipeline.fingerprints.fingerprints import Fingerprint
from eval_pipeline.workspace.homes.kept import (
    EVIDENCE,
    MOST_BYTES,
    OUTCOMES,
    KeptValues,
    kept_bytes,
    kept_of_answers,
    steady,
)

CODE = Fingerprint("code", {"duckdb": "1"})


def whole(told: Json) -> Json:
    if not isinstance(told, int):
        raise ValueError("no number")
    return told


def test_what_depends_on_anything_else_is_not_found(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    kept = KeptValues(home, OUTCOMES, CODE)
    kept.put(kept.key("sql", 1), 7)
    assert KeptValues(home, OUTCOMES, CODE).find(kept.key("sql", 1), whole) == 7
    others = [
        KeptValues(home, EVIDENCE, CODE),
        KeptValues(home, OUTCOMES, Fingerprint("other", {"duckdb": "1"})),
        KeptValues(home, OUTCOMES, Fingerprint("code", {"duckdb": "2"})),
        KeptValues(home, OUTCOMES, Fingerprint("code", {})),
    ]
    assert [other.find(other.key("sql", 1), whole) for other in others] == [None] * 4
    assert [kept.find(kept.key(*parts), whole) for parts in (["sql", 2], ["sql"], ["sql", "1"], [["sql", 1]])] == [
        None
    ] * 4


def test_a_file_of_another_key_or_in_another_form_counts_as_missing(tmp_path: Path) -> None:
    kept = KeptValues(Home(tmp_path, tmp_path), OUTCOMES, CODE)
    one, other = kept.key(1), kept.key(2)
    kept.put(one, 7)
    folder = tmp_path / "expected"
    (folder / f"outcome-{other}.json").write_bytes((folder / f"outcome-{one}.json").read_bytes())
    assert (kept.find(one, whole), kept.find(other, whole)) == (7, None)
    kept.put(one, "seven")
    assert kept.find(one, whole) is None


def test_what_a_limit_has_stopped_is_not_kept() -> None:
    kept: list[int] = []

    def stopped() -> int:
        note_stopped()
        return 1

    assert (steady(stopped, kept.append), kept) == (1, [])
    assert (steady(lambda: 2, kept.append), kept) == (2, [2])


def test_the_folder_is_looked_through_once_an_hour_after_something_was_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MOST_BYTES, "0")
    kept, folder = KeptValues(Home(tmp_path, tmp_path), OUTCOMES, CODE), tmp_path / "expected"
    kept.bound()
    assert not folder.exists(), "nothing was added"
    kept.put(kept.key(1), 7)
    kept.bound()
    assert kept.find(kept.key(1), whole) is None
    kept.put(kept.key(1), 7)
    kept.bound()
    assert kept.find(kept.key(1), whole) == 7, "within the hour"
    os.utime(folder / ".trimmed", (time.time() - 4000,) * 2)
    kept.put(kept.key(2), 7)
    kept.bound()
    assert kept_of_answers(Home(tmp_path, tmp_path)) == []
    assert kept_bytes(folder) == 0
