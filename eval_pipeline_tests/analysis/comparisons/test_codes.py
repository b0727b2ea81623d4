"""Codes in the place of keys, compared with a dict of tuples."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.analysis.comparisons import scored
from eval_pipeline.analysis.comparisons.scored import Coder, digests
from eval_pipeline_tests.analysis.comparisons.held import reader, side

ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", "a\x1fb"]), st.integers(0, 2), st.none() | st.text(max_size=1)))
COLUMNS = ("turn_id", "sample", "expected")


def table(rows: Sequence[tuple[str, int, str | None]]) -> pa.Table:
    kinds = (pa.string(), pa.int64(), pa.string())
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({name: pa.array(found, kind) for name, found, kind in zip(COLUMNS, columns, kinds, strict=True)})


@given(st.lists(ROWS, max_size=3))
def test_codes_count_keys_in_the_order_of_their_first_occurrence(
    calls: list[list[tuple[str, int, str | None]]],
) -> None:
    coder, known = Coder(), dict[tuple[str, int, str | None], int]()
    for rows in calls:
        expected = [known.setdefault(row, len(known)) for row in rows]
        assert coder.codes(digests(table(rows), COLUMNS)).tolist() == expected


def test_more_rows_than_are_digested_at_a_time() -> None:
    many = table([("a", number, None) for number in range(2 * scored._ROWS + 1)])
    assert Coder().codes(digests(many, COLUMNS)).tolist() == list(range(many.num_rows))


def test_turns_are_named_with_their_sample_from_the_second_on() -> None:
    evaluated = side("a").evaluated
    held = evaluated.held
    assert held is not None
    sample = held.turns.schema.get_field_index("sample")
    turns = held.turns.set_column(sample, "sample", pa.array([1, 0]))
    told = reader()
    told.read(replace(evaluated, held=replace(held, turns=turns)))
    assert told.names(np.array([1, 0])) == ["small/c000#0~1", "small/c001#0"]
