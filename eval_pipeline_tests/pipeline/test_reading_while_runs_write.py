"""A reader of the published store, while two processes evaluate model versions."""

import duckdb

from eval_pipeline_tests.forked import forked
from eval_pipeline_tests.reader import TORN, Reader
from eval_pipeline_tests.remote import MODULE
from eval_pipeline_tests.support import Lab


def test_a_reader_meets_neither_a_lock_nor_a_torn_state_while_four_partitions_are_made(lab: Lab) -> None:
    lab.suite()
    names = [f"model-{i}" for i in range(5)]
    rates = {"provider": "simulated", "options": {"rates": {}}}
    lab.versions(*[{"name": name, **rates} for name in names])
    lab.evaluate(version=names[0], publish=True)  # there is something to read from the beginning
    with Reader(lab.home.store) as reader:
        children = [
            forked(f"{MODULE}:main", half, lab.environment, lab.home.root.parent / f"{half[0]}.log")
            for half in (names[1::2], names[2::2])
        ]
        codes = [child.wait(240) for child in children]
    assert codes == [0, 0], [child.log.read_text() for child in children]
    assert reader.wrong == []
    assert len(reader.seen) > 1
    assert reader.looks > len(names)
    assert lab.one("SELECT count(DISTINCT model_version) FROM turn_results") == len(names)
    # The reader would see it: what it asks finds tables that disagree.
    with duckdb.connect(str(lab.home.store)) as connection:
        connection.execute("DELETE FROM turn_results WHERE model_version = 'model-3' AND turn_index = 1")
        assert len(connection.execute(TORN).fetchall()) == 2
