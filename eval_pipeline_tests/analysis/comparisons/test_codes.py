"""Codes in the place of keys, compared with a dict of tuples."""

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.analysis.comparisons import scored
from eval_pipeline.analysis.comparisons.scored import Coder, digests

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
