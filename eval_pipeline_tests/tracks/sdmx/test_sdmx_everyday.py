"""The suite that retrieval is measured with: it is sound, large, and its halves are what they say."""

from collections import defaultdict
from hashlib import sha256
from pathlib import Path

import pytest

from eval_pipeline.suites import read_header, read_suite
from eval_pipeline.suites.cases import SuiteCases

SUITE = Path(__file__).parents[3] / "benchmarks" / "suites" / "sdmx_everyday"


@pytest.fixture(scope="module")
def everyday() -> SuiteCases:
    return read_suite(read_header(SUITE))


def test_it_asks_over_lists_of_thousands_of_codes(everyday: SuiteCases) -> None:
    assert not everyday.problems
    assert len(everyday.cases) >= 150
    lists = everyday.cases[0].context.catalogue.code_lists()
    assert max(len(codes.terms) for codes in lists.values()) > 2_000


def test_its_halves_go_by_the_hash_of_the_id(everyday: SuiteCases) -> None:
    for case in everyday.cases:
        even = int(sha256(case.id.encode()).hexdigest(), 16) % 2 == 0
        assert case.tags == ("half_a" if even else "half_b",)


def test_of_each_half_nearly_everything_is_among_the_first_twenty(everyday: SuiteCases) -> None:
    offered: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for case in everyday.cases:
        (turn,) = case.turns
        found = case.context.candidates(turn)
        for (data_set, dimension), terms in turn.gold.target.places.items():
            offered[case.tags[0], dimension] += [found.offers((data_set, dimension), term) for term in terms]
    shares = {place: sum(known) / len(known) for place, known in offered.items()}
    assert min(shares["half_a", "GOODS"], shares["half_b", "GOODS"]) >= 0.9
    assert shares["half_a", "CURRENCY"] == shares["half_b", "CURRENCY"] == 1


def test_a_currency_that_the_request_says_is_offered(everyday: SuiteCases) -> None:
    """Twenty-two old currencies have "euro" in their longer names."""
    for case in everyday.cases:
        request = case.context.requests[0]
        if "euro" in request.lower().split():
            found = case.context.candidates(case.turns[0]).places["EVD:GOODS_TRADE", "CURRENCY"]
            assert "EUR" in [term.id for term in found[:5]], request
