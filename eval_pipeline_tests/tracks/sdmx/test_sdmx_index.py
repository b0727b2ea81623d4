"""The search of a code list: whole names, main words, other wordings, and words that are spelled alike."""

from pathlib import Path

import pytest
import yaml

from eval_pipeline.tracks.sdmx.catalogue import everyday
from eval_pipeline.tracks.sdmx.catalogue.catalogue import CodeList, Term
from eval_pipeline.tracks.sdmx.catalogue.everyday import said_otherwise
from eval_pipeline.tracks.sdmx.index import Index
from eval_pipeline.tracks.sdmx.near_words import NearWords
from eval_pipeline.tracks.sdmx.words import Words, words


def index(*names: str) -> Index:
    return Index(CodeList("L", tuple(Term(f"C{place}", name) for place, name in enumerate(names))))


def best(found: Index, request: str, most: int = 3, otherwise: tuple[str, ...] = ()) -> list[str]:
    parts = [tuple(words(part)) for part in request.split(",")]
    asked = [tuple(words(request)), *(parts if len(parts) > 1 else ())]
    return [term.name for term in found.best(asked, most, [tuple(words(text)) for text in otherwise])]


def test_a_whole_name_in_the_request_is_among_the_first() -> None:
    old = [f"Old money number {place}, rate to the euro per euro" for place in range(30)]
    assert "Euro" in best(index(*old, "Euro"), "exports to the old money area, in euro", 3)


def test_a_name_that_many_terms_have_decides_nothing() -> None:
    names = [*("Other" for _ in range(6)), "Other fish"]
    assert best(index(*names), "other fish", 1) == ["Other fish"]


def test_the_main_words_of_a_name_count_like_a_name() -> None:
    found = index(
        "Flours of soya beans; soya bean flour: soya", "Oil of soya beans, soya bean oil", "Soya beans, broken"
    )
    assert best(found, "soya beans", 1) == ["Soya beans, broken"]


def test_other_wordings_give_terms_that_the_request_does_not_name() -> None:
    found = index("Automatic data processing machines, portable", "Washing machines", "Bread")
    assert best(found, "laptops") == []
    assert best(found, "laptops", otherwise=("portable data processing",)) == [
        "Automatic data processing machines, portable"
    ]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("in kroner", "Danish krone"),
        ("yoghurt", "Yogurt"),
        ("shekels", "New sheqel"),
        ("toothbrush", "Tooth brushes"),
        ("smart phones", "Smartphones"),
    ],
)
def test_words_that_are_spelled_alike_are_found(said: str, meant: str) -> None:
    assert best(index("Danish krone", "Yogurt", "New sheqel", "Tooth brushes", "Smartphones"), said) == [meant]


def test_an_unknown_word_that_is_like_no_other_finds_nothing() -> None:
    assert list(NearWords({"krone": 0, "c0012": 1}).instead(("xyzzy", "c0013", "kr"))) == []


def test_asking_for_more_does_not_change_the_first() -> None:
    found = index(*(f"{kind} of {stuff}" for kind in ("Oil", "Flour", "Seed") for stuff in ("soya", "maize", "rape")))
    asked = [tuple(words("oil and soya")), ("oil",), ("soya",)]
    everything = found.best(asked, 9, [("maize",)])
    assert [found.best(asked, most, [("maize",)]) for most in range(1, 9)] == [
        everything[:most] for most in range(1, 9)
    ]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("exports of mobile phones", "smartphone"),
        ("coffee machines", "coffee maker"),
        ("soya beans", "soy"),
        ("hair dryers", "hairdryer"),
    ],
)
def test_what_a_request_names_is_said_otherwise(said: str, meant: str) -> None:
    assert tuple(words(meant)) in said_otherwise([tuple(words(said))])


def test_the_longest_name_counts() -> None:
    """A washing machine is no machine tool, and a coffee machine no coffee."""
    found: list[Words] = said_otherwise([tuple(words("coffee machines"))])
    assert tuple(words("coffee roasted")) not in found


def test_nothing_is_said_otherwise_of_words_that_no_group_has() -> None:
    assert said_otherwise([("xyzzy",)]) == []


def test_each_group_of_the_file_has_two_names_of_words_at_least() -> None:
    (name,) = everyday.DATA_FILES
    for line in yaml.safe_load(Path(everyday.__file__).with_name(name).read_text(encoding="utf-8")):
        group = {tuple(words(part)) for part in line.split(",")}
        assert len(group) > 1, line
        assert () not in group, line
