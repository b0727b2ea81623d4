"""How much of an evaluation is in memory at once: all of a small one, of a large one a range of whole cases.

A small evaluation is kept between the stages of a process, which saves reading it again. A large one is read anew by
each stage, one range after the other, so that memory does not grow with it.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

HELD_TURNS, HELD_BYTES = 10_000, 64 << 20
"""An evaluation with at most so many answers, of so many bytes in the record, is held in memory as a whole."""
RANGE_TURNS, RANGE_BYTES = 2_000, 2 << 20
"""Answers, and bytes of them, in a range of a larger one, about; whole cases are not cut."""


def is_small(turns: int, size: int = 0, *, acted: bool = False) -> bool:
    """Whether so many turns, times samples, are held in memory as a whole.

    Args:
        turns: their number.
        size: bytes of the answers in the record, as far as they are known.
        acted: whether they are attempts of agents: of these no more than a range is held, as each has its whole
            conversation, and reading it again takes far less than it took to be made.
    """
    return turns <= HELD_TURNS and size <= (RANGE_BYTES if acted else HELD_BYTES)


def together(most: int, bytes_a_turn: float) -> int:
    """Returns how many turns are worked on at once: at most so many, of about `RANGE_BYTES` at most."""
    return max(1, min(most, int(RANGE_BYTES / max(bytes_a_turn, 1.0))))


def ranges(within: range, turns_a_case: float, bytes_a_turn: float = 0.0) -> Iterator[range]:
    """Cuts a range of cases into smaller ones of about `RANGE_TURNS` turns each, or of `RANGE_BYTES`."""
    step = max(1, int(together(RANGE_TURNS, bytes_a_turn) / max(turns_a_case, 1.0)))
    for first in range(within.start, within.stop, step):
        yield range(first, min(first + step, within.stop))


def spans(groups: Sequence[pa.Table], case_ids: pa.ChunkedArray) -> list[range]:
    """Returns for each row group the range of places in `case_ids` that the cases of its rows lie in.

    Args:
        groups: the column `case_id` of each row group of a table.
        case_ids: the ids of all cases, in the suite's order.
    """
    places = pc.index_in(pa.concat_tables(groups)["case_id"], value_set=case_ids.combine_chunks())
    found, start = [], 0
    for group in groups:
        ends = pc.min_max(places.slice(start, group.num_rows)).as_py()
        found.append(range(0) if ends["min"] is None else range(ends["min"], ends["max"] + 1))
        start += group.num_rows
    return found


def overlapping(found: Sequence[range], within: range) -> list[int]:
    """Returns the numbers of the ranges that have a place in common with `within`."""
    return [number for number, span in enumerate(found) if max(span.start, within.start) < min(span.stop, within.stop)]
