"""What is told of a table that is looked at: its rows, or a sum over many. Standard library only."""

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any


def tabled(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], most: int, place: str, frees: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Returns `columns`, `rows` and `count`; of more than `most` rows no rows, but a `hash` for each of `frees`.

    A hash is the same for the same rows in any order, and with columns in any order.

    Args:
        columns: their names.
        rows: cells as JSON has them.
        most: rows that are told.
        place: the name of the table.
        frees: patterns of columns, as `place.column`, that a hash leaves out.
    """
    order = sorted(range(len(columns)), key=lambda at: (columns[at], at))
    counted = [
        [at for at in order if not any(fnmatchcase(f"{place}.{columns[at]}", one) for one in free)] for free in frees
    ]
    totals = dict.fromkeys(map(tuple, counted), 0)
    written = json.JSONEncoder(sort_keys=True).encode

    def plain(cell: Any) -> Any:
        if not isinstance(cell, float) or not math.isfinite(cell):
            return cell
        if cell.is_integer() and abs(cell) < 1 << 53:
            return int(cell)
        part, power = math.frexp(cell)
        return [round(part * (1 << 40)), power]

    def add(row: Sequence[Any]) -> None:
        cells = [plain(cell) for cell in row]
        for places, total in totals.items():
            told = written([cells[at] for at in places]).encode("utf-8", "surrogatepass")
            digest = hashlib.blake2b(told, digest_size=32).digest()
            totals[places] = (total + int.from_bytes(digest, "big")) % (1 << 256)

    kept: list[Sequence[Any]] = []
    count = 0
    for row in rows:
        count += 1
        if count <= most:
            kept.append(row)
            continue
        for one in kept:
            add(one)
        kept = []
        add(row)
    found: dict[str, Any] = {"columns": list(columns), "rows": kept, "count": count}
    return found if count <= most else {**found, "hash": [f"{totals[tuple(one)]:x}" for one in counted]}
