"""Finds the countries mentioned in a request by names, adjectives, and groups such as the Baltics."""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from eval_pipeline_plugins.tracks.sdmx.search.words import normalised, words

DATA_FILES = ("countries.yaml",)
_OURS = Path(__file__).with_name("countries.yaml")
_GEOGRAPHIC = re.compile(r"COUNTRY|AREA|GEO|REPORTER|PARTNER|ECONOMY|TERRITORY", re.IGNORECASE)
_LONGEST = 7
"""Maximum number of words in a name."""


def is_geographic(dimension: str) -> bool:
    """Whether a dimension's id indicates that its terms are countries or other areas."""
    return _GEOGRAPHIC.search(dimension) is not None


def countries_in(request: str) -> dict[str, None]:
    """Returns ISO 3166 alpha-3 codes of the countries named in a text, in order; groups are expanded."""
    words = re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*\.?", request)
    plain = [normalised(word) for word in words]
    found: dict[str, None] = {}
    place = 0
    while place < len(words):
        length, codes = _longest_name(words, plain, place)
        found |= dict.fromkeys(codes)
        place += length
    return found


def country_of(id: str, name: str) -> str | None:
    """Returns the alpha-3 code of the country that a term stands for, by its name or else by its code."""
    known = _names()
    for text in (name, name.partition(",")[0], name.partition(" (")[0]):
        codes = known.get(normalised(text))
        if codes is not None and len(codes) == 1:
            return codes[0]
    return _codes().get(id)


@lru_cache(maxsize=1)
def words_of_names() -> frozenset[str]:
    """Returns every word of a country's or group's name or adjective, as `words` yields them."""
    return frozenset(word for name in _names() for word in words(name))


def adjectives_of(code: str) -> tuple[str, ...]:
    """Returns the adjectives of a country, given by its alpha-3 code."""
    return tuple(_ours()["adjectives"].get(code, ()))


def _longest_name(words: list[str], plain: list[str], place: int) -> tuple[int, tuple[str, ...]]:
    """Returns the length in words of the longest name at a position, and its countries.

    `plain` are the normalised words.
    """
    for length in range(min(_LONGEST, len(words) - place), 0, -1):
        if length == 1:
            # In capitals only: `us` and `per` are words, US and PER are countries.
            bare = words[place].rstrip(".").replace(".", "")
            codes = _abbreviations().get(bare) or ((_codes()[bare],) if len(bare) == 3 and bare in _codes() else None)
            if codes:
                return 1, codes
        found = _names().get(" ".join(plain[place : place + length]))
        if found is not None:
            return length, found
    return 1, ()


@lru_cache(maxsize=1)
def _ours() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(_OURS.read_text(encoding="utf-8"))
    return found


@lru_cache(maxsize=1)
def _codes() -> Mapping[str, str]:
    """Returns alpha-2 or alpha-3 code → alpha-3 code."""
    from pycountry import countries

    return {code: country.alpha_3 for country in countries for code in (country.alpha_2, country.alpha_3)}


@lru_cache(maxsize=1)
def _abbreviations() -> Mapping[str, tuple[str, ...]]:
    found = {text: (code,) for text, code in _ours()["abbreviations"].items()}
    return found | {name: tuple(members) for name, members in _ours()["groups"].items() if name.isupper()}


@lru_cache(maxsize=1)
def _names() -> Mapping[str, tuple[str, ...]]:
    """Returns normalised name → countries: official, common and other names, adjectives, groups."""
    from pycountry import countries

    found: dict[str, tuple[str, ...]] = {}
    for country in countries:
        name = country.name
        forms = {name, getattr(country, "common_name", name), getattr(country, "official_name", name)}
        family, comma, rest = name.partition(", ")
        if comma:
            forms |= {f"{rest} {family}"}
        found |= {normalised(form): (country.alpha_3,) for form in forms}
    for kind in ("names", "adjectives"):
        for code, others in _ours()[kind].items():
            found |= {normalised(other): (code,) for other in others}
    for group, members in _ours()["groups"].items():
        if not group.isupper():
            found[normalised(group)] = tuple(members)
    return found
