"""The suite that retrieval is measured with: it is sound, large, and its halves are what they say."""

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
