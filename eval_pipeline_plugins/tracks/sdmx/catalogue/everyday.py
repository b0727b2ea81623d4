"""Says in other words what a request names: official words for everyday ones, and the other way round."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import yaml

from eval_pipeline_plugins.tracks.sdmx.search.words import Words, words

DATA_FILES = ("everyday.yaml",)
_GROUPS = Path(__file__).with_name("everyday.yaml")
_MOST = 12
"""How many other wordings of a request are searched for at most, to bound the time of a search."""


def said_otherwise(parts: Sequence[Words]) -> list[Words]:
    """Returns other names of what the parts of a request name, for the longest names in them first found.

    Args:
        parts: the words of each part, the most important part first.
    """
    known = _names()
    longest = max(map(len, known))
    found: dict[Words, None] = {}
    for part in parts:
        place = 0
        while place < len(part):
            lengths = range(min(longest, len(part) - place), 0, -1)
            length = next((length for length in lengths if part[place : place + length] in known), 0)
            found |= dict.fromkeys(known.get(part[place : place + length], ()))
            place += length or 1
    return list(found)[:_MOST]


@lru_cache(maxsize=1)
def _names() -> Mapping[Words, tuple[Words, ...]]:
    """Returns each name in the file → the other names of the groups that it is in."""
    found: dict[Words, tuple[Words, ...]] = {}
    for line in yaml.safe_load(_GROUPS.read_text(encoding="utf-8")):
        group = list(dict.fromkeys(tuple(words(name)) for name in line.split(",")))
        for name in group:
            found[name] = (*found.get(name, ()), *(other for other in group if other != name))
    return found
