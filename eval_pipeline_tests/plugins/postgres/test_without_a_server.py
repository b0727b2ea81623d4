"""What is decided on this side of the connection: how long a lease is good, and whether judgements are deleted."""

from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline.core.system.days import since_boot
from eval_pipeline_plugins.postgres import shelf
from eval_pipeline_plugins.postgres.leases import LostLeaseError, PostgresLeases


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_counts_judgements_and_deletes_none(dry_run: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[str] = []
    rows = [("a", "old"), ("b", "new"), ("c", "old")]
    monkeypatch.setattr(shelf, "rows_of", lambda session, table, columns: rows)
    monkeypatch.setattr(shelf, "delete", lambda session, table, column, keys: deleted.extend(keys))
    monkeypatch.setattr(shelf, "rewrite", lambda session, table: None)
    own: Any = SimpleNamespace(_session=None)
    assert shelf.PostgresShelf.purge(own, lambda key, body: body == "old", dry_run=dry_run) == 2
    assert deleted == ([] if dry_run else ["a", "c"])


@pytest.mark.parametrize("held", [True, False])
def test_who_reserves_holds_its_lease_for_a_whole_life_more(held: bool) -> None:
    lease: Any = SimpleNamespace(name="n", fence=1, good_until=0.0, lose=lambda: LostLeaseError("gone"))
    own: Any = SimpleNamespace(_life="9 s", life_s=9.0, _session=SimpleNamespace(run=lambda _: (1,) if held else None))
    before = since_boot()
    if not held:
        with pytest.raises(LostLeaseError):
            PostgresLeases.reserve(own, lease, 1, 2, 0.5)
        assert lease.good_until == 0.0
        return
    PostgresLeases.reserve(own, lease, 1, 2, 0.5)
    assert before + 9.0 <= lease.good_until <= since_boot() + 9.0
