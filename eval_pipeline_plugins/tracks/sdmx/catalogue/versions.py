"""Versions of artefacts, and the data set that an id with a version or a wildcard means."""

import re
from collections.abc import Iterable


def is_wildcard(version: str) -> bool:
    """Whether a version is a wildcard for the newest of several."""
    return bool(set(version) & {"+", "*"}) or version.lower() in {"latest", "all"}


def fits(version: str, asked: str) -> bool:
    """Whether a version matches `2.1+` (not older, and the numbers before the one with `+` are the same), or `1.*`."""
    if "+" in asked:
        stem, found = version_numbers(asked), version_numbers(version)
        same = max(len(version_numbers(asked.split("+")[0])) - 1, 0)
        return found[:same] == stem[:same] and found >= stem
    stem = version_numbers(asked.split("*")[0])
    return version_numbers(version)[: len(stem)] == stem


def version_numbers(version: str) -> tuple[int, ...]:
    """Returns the numbers of a version as a sort key."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def newest_fitting(asked: str, known: Iterable[tuple[str, str]]) -> str | None:
    """Returns the id of the data set that an id means if no data set has exactly that id; None if there is none.

    `A:B(1.0+)`, `A:B(*)` and `A:B(latest)` mean the newest version that fits, as does `A:B`. `A:B(1.0)` means only that
    version, or a data set of a list of terms, which has no version.

    Args:
        asked: `AGENCY:ID`, perhaps with `(VERSION)`.
        known: id and version of each data set; the id may end in `(VERSION)`, too.
    """
    name, wanted = _parts(asked)
    fitting: list[tuple[tuple[int, ...], str]] = []
    for id, version in known:
        base, own = _parts(id)
        held = version or own
        if base == name and (not held or not wanted or held == wanted or (is_wildcard(wanted) and fits(held, wanted))):
            fitting.append((version_numbers(held), id))
    return max(fitting)[1] if fitting else None


def _parts(id: str) -> tuple[str, str]:
    """Splits `AGENCY:ID(VERSION)` into the id without version and the version, which may be empty."""
    name, bracket, rest = id.strip().partition("(")
    return (name, rest[:-1].strip()) if bracket and rest.endswith(")") else (id.strip(), "")
