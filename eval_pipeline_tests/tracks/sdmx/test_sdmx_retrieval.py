"""Candidates: countries and groups, near-duplicates, synonyms, long lists, large dimensions; the search.

The suite `sdmx_everyday`, which retrieval is measured with, is sound and large, and its halves are what they say.
"""

from collections import defaultdict
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.retrieval import strangers
from eval_pipeline.fingerprints.fingerprints import Fingerprints
from eval_pipeline.suites.cases import SuiteCases, read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.code import methods
from eval_pipeline_plugins.tracks.sdmx.catalogue import everyday
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue, CodeList, DataSet, Dimension, Term
from eval_pipeline_plugins.tracks.sdmx.catalogue.countries import countries_in, country_of
from eval_pipeline_plugins.tracks.sdmx.catalogue.everyday import said_otherwise
from eval_pipeline_plugins.tracks.sdmx.catalogue.source import read_catalogue
from eval_pipeline_plugins.tracks.sdmx.search.index import Index, NearWords
from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Retriever
from eval_pipeline_plugins.tracks.sdmx.search.words import Vocabulary, Words, words
from eval_pipeline_plugins.tracks.sdmx.sheets.figures import retrieval_recalls
from eval_pipeline_plugins.tracks.sdmx.track import TRACK
from eval_pipeline_tests.support import ROOT
from eval_pipeline_tests.tracks.sdmx.helpers import (
    SAMPLE,
    attempt_at,
    case_of,
    evidence_of,
    response,
    sample_cases,
    scores,
)

EVERYDAY = ROOT / "benchmarks" / "suites" / "sdmx_everyday"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GDP of Mexico", "MEX"),
        ("the Baltics", "EST LVA LTU"),
        ("BRICS", "BRA RUS IND CHN ZAF EGY ETH IDN IRN ARE"),
        ("prices in the UK and the U.S.", "GBR USA"),
        ("tell us per capita what can be said", ""),
        ("PER and CAN in capitals", "PER CAN"),
        ("IT jobs, NO or ME: two letters are no country", ""),
        ("French wine, Korean cars, Turkey", "FRA KOR TUR"),
        ("Côte d'Ivoire; the Ivory Coast again", "CIV"),
        ("Bosnia and Herzegovina", "BIH"),
        ("South Africa, not South Korea", "ZAF KOR"),
        ("Guinea-Bissau", "GNB"),
        ("Democratic Republic of Congo", "COD"),
        ("Republic of Congo", "COG"),
        ("Viet Nam or Vietnam", "VNM"),
        ("Visegrad Four", "CZE HUN POL SVK"),
        ("euro area", "AUT BEL BGR HRV CYP EST FIN FRA DEU GRC IRL ITA LVA LTU LUX MLT NLD PRT SVK SVN ESP"),
        ("", ""),
    ],
)
def test_countries_are_found_by_their_names_and_groups(text: str, expected: str) -> None:
    assert list(countries_in(text)) == expected.split()


@pytest.mark.parametrize(
    ("id", "name", "expected"),
    [
        ("MEX", "Mexico", "MEX"),
        ("AFG", "Afghanistan, Islamic Republic of", "AFG"),
        ("512", "Afghanistan", "AFG"),
        ("DE", "whatever", "DEU"),
        ("W00", "World", None),
        ("G163", "Euro area", None),
    ],
)
def test_terms_stand_for_the_countries_they_name(id: str, name: str, expected: str | None) -> None:
    assert country_of(id, name) == expected


@given(st.text(max_size=200))
def test_any_text_may_be_asked_and_a_vocabulary_numbers_its_words(text: str) -> None:
    assert isinstance(countries_in(text), dict)
    vocabulary = Vocabulary()
    numbers = vocabulary.numbers(text)
    names = {number: word for word, number in vocabulary.tokens.items()}
    assert [names[number] for number in numbers] == list(words(text))


@pytest.fixture(scope="module")
def shipped() -> Retriever:
    return Retriever(read_catalogue(SAMPLE, {}).catalogue, 10, 20)


def ids(found: Retriever, request: str, data_set: str, dimension: str) -> list[str]:
    return [term.id for term in found.candidates(request).places[data_set, dimension]]


def test_members_of_a_group_come_first_however_many_they_are(shipped: Retriever) -> None:
    found = ids(shipped, "population of the European Union", "GSO.NA:ANA", "COUNTRY")
    assert len(found) >= 27
    assert found[0] == "AUT"
    assert {"EST", "SWE", "IRL"} <= set(found)


@pytest.mark.parametrize(
    ("request_text", "data_set", "dimension", "wanted"),
    [
        ("real GDP growth, percent change over a year earlier", "GSO.NA:ANA", "INDICATOR", "GDP_PCH"),
        ("jobless rate", "GSO.NA:ANA", "INDICATOR", "LUR"),
        ("core inflation", "GSO.PRC:CPI", "ITEM", "XFE"),
        ("petrol", "GSO.PRC:CPI", "ITEM", "CP0722"),
        ("crude oil exports", "GSO.EXT:TRADE", "COMMODITY", "SITC331"),
        ("SITC041 please", "GSO.EXT:TRADE", "COMMODITY", "SITC041"),
    ],
)
def test_names_synonyms_and_ids_are_found(
    shipped: Retriever, request_text: str, data_set: str, dimension: str, wanted: str
) -> None:
    assert wanted in ids(shipped, request_text, data_set, dimension)[:3]


def test_every_item_of_a_long_list_has_its_turn() -> None:
    """By the whole request alone the list's common words (constant prices, domestic currency) would crowd them out."""
    case = next(case for case in sample_cases() if case.context.name == "expenditure_side_australia")
    offered = {term.id for term in case.context.candidates(case.turns[0]).places["GSO.NA:ANA", "INDICATOR"]}
    assert {"HFC_XDC_Q", "INV_XDC_Q", "EXP_XDC_Q", "IMP_XDC_Q"} <= offered


def test_a_small_dimension_is_offered_whole_and_a_large_one_in_part(shipped: Retriever) -> None:
    found = shipped.candidates("nothing of the kind")
    assert len(found.places["GSO.PRC:CPI", "MEASURE"]) == 6
    assert len(found.places["GSO.PRC:CPI", "ITEM"]) <= 10


@pytest.mark.parametrize("said", ["xyzzy", "the of and", ""])
def test_a_request_that_shares_no_word_is_offered_one_term_of_each_kind_and_no_country(
    shipped: Retriever, said: str
) -> None:
    offered = ids(shipped, said, "GSO.NA:ANA", "INDICATOR")
    assert offered == ["GDP", "GNI", "NDI", "HFC", "GFC", "NPC", "TFC", "GCF", "GFCF", "GFCP"]
    assert ids(shipped, said, "GSO.NA:ANA", "COUNTRY") == []


def test_places_that_are_left_are_filled() -> None:
    """Forty-five indicators, in pairs of units, and twenty places: what is said in words of its own is among them."""
    named = [f"Measure {number}, {unit}" for number in range(22) for unit in ("dollars", "percent")]
    terms = tuple(Term(f"M{place}", name) for place, name in enumerate(["Share of people without work", *named]))
    catalogue = Catalogue({"X:Y": DataSet("X:Y", "y", "", "", {"WHAT": Dimension("WHAT", "w", CodeList("L", terms))})})
    for said in ("idleness in Spain", "idleness in dollars of Spain"):
        offered = ids(Retriever(catalogue, 20, 5), said, "X:Y", "WHAT")
        assert len(offered) == 20
        if said.endswith("in Spain"):
            assert offered == ["M0", *(f"M{1 + 2 * number}" for number in range(19))]


HEADINGS = (
    Term("94", "Furniture and bedding"),
    Term("9401", "Seats", parent="94"),
    *(Term(f"94010{n}", f"Seats: {kind}", parent="9401") for n, kind in enumerate(("of cane", "with wooden frame"))),
    Term("9403", "Other furniture", parent="94"),
    *(Term(f"94030{n}", f"Other furniture: {kind}", parent="9403") for n, kind in enumerate(("wooden", "of metal"))),
    Term("44", "Wood", parent="44"),  # its own parent, which ends
)


@pytest.mark.parametrize(
    ("found", "offered"),
    [
        ("940300", "940300"),
        ("940300 940301", "940300 940301 9403"),
        ("940300 940100 940301", "940300 940100 940301 9403"),
        ("940300 940301 940101 940100", "940300 940301 9403 940101 940100 9401 94"),
        ("9403 940300 940301", "9403 940300 940301"),
        ("940300 9403 9401", "940300 9403 9401 94"),
        ("44 44", "44"),
    ],
)
def test_a_parent_is_offered_after_the_second_of_its_children(
    monkeypatch: pytest.MonkeyPatch, found: str, offered: str
) -> None:
    index = Index(CodeList("L", HEADINGS))
    places = {term.id: place for place, term in enumerate(HEADINGS)}
    monkeypatch.setattr(index, "_found", lambda *_: [places[id] for id in found.split()])
    expected = offered.split()
    for most in range(1, 9):
        assert [term.id for term in index.offered([], most)] == expected[:most]
    filled = [term.id for term in index.offered([], 300, (), 8)]
    assert filled[: len(expected)] == expected
    assert sorted(filled) == sorted(places)
    assert [term.id for term in index.offered([], 300, (), len(expected))] == expected


def test_the_parents_of_the_best_terms_are_offered_early() -> None:
    """Of twelve terms found, each with a parent of its own, the first three have theirs after the tenth term."""
    parents = [Term(f"P{n}", f"heading {n}") for n in range(12)]
    index = Index(CodeList("L", (*parents, *(Term(f"T{n}", f"tea {n}", parent=f"P{n}") for n in range(12)))))
    offered = [term.id for term in index.offered([("tea",)], 300)]
    assert offered == [*(f"T{n}" for n in range(10)), "P0", "P1", "P2", "T10", "T11"]


def test_a_country_is_no_misspelled_word() -> None:
    """Poland is neither Portland cement nor a polish, and Spain no stain."""
    found = index_of("Portland cement", "Polish", "Stain")
    assert best(found, "made in Poland, Spain") == []
    assert best(found, "polishe") == ["Polish"]


def test_the_other_parents_of_what_was_found_are_the_first_to_fill_places() -> None:
    index = Index(CodeList("L", HEADINGS))
    assert [term.id for term in index.offered([("cane",)], 300, (), 4)] == ["940100", "9401", "94", "44"]
    assert [term.id for term in index.best([("cane",)], 300)] == ["940100"]


def test_the_parent_is_part_of_what_a_term_is_found_by() -> None:
    terms = (Term("A", "Energy"), *(Term(f"A{i}", f"kind {i}", parent="A") for i in range(4)), Term("B", "Food"))
    catalogue = Catalogue({"X:Y": DataSet("X:Y", "y", "", "", {"ITEM": Dimension("ITEM", "i", CodeList("L", terms))})})
    assert ids(Retriever(catalogue, 5, 5), "energy", "X:Y", "ITEM") == ["A", "A0", "A1", "A2", "A3"]


def test_of_many_data_sets_the_fitting_ones_are_offered() -> None:
    def data_set(name: str) -> DataSet:
        codes = CodeList(f"L {name}", (Term("T", f"{name} total"),))
        return DataSet(f"X:{name}", name, "", "", {"ITEM": Dimension("ITEM", "item", codes)})

    names = ("fishing", "mining", "tourism", "banking", "farming")
    catalogue = Catalogue({f"X:{name}": data_set(name) for name in names})
    found = Retriever(catalogue, 5, 2).candidates("banks, tourism and banking")
    assert set(found.data_sets) == {"X:tourism", "X:banking"}
    assert set(found.places) == {("X:tourism", "ITEM"), ("X:banking", "ITEM")}


def test_a_later_turn_is_retrieved_for_with_what_was_asked_before_and_never_with_what_comes() -> None:
    case = case_of(("population of Mexico", {}), ("and the Baltics", {}), ("Argentina", {}), most=2)
    offered = [{term.id for term in case.context.candidates(turn).places["D:ONE", "COUNTRY"]} for turn in case.turns]
    assert offered == [{"MEX"}, {"MEX", "EST", "LVA", "LTU"}, {"MEX", "EST", "LVA", "LTU", "ARG"}]


def test_a_long_question_does_not_crowd_out_the_one_after_it(shipped: Retriever) -> None:
    items = "meat, wine, beer, coffee, tea, cigarettes, garments, footwear, electricity, gas, bicycles, tobacco, books"
    asked = f"Prices of {items}, water, health, education, restaurants\nNow spirits"
    assert "CP0211" in ids(shipped, asked, "GSO.PRC:CPI", "ITEM")


def test_what_was_not_offered_is_a_retrieval_miss_and_the_rest_a_selection_miss() -> None:
    """Of the four terms of the target the two countries are offered; one of them is selected, and one beside it."""
    case = case_of(
        ("xyzzy of Mexico, Latvia", {"D:ONE COUNTRY": ["MEX", "LVA"], "D:ONE INDICATOR": ["GDP_CONST", "POP"]}), most=2
    )
    found = scores(case, case.turns[0], response({"D:ONE COUNTRY": ["MEX", "ARG"]}))
    assert (found["retrieval_recall"], found["retrieval_misses"], found["selection_misses"]) == (0.5, 2, 1)
    assert found["retrieval_recall_from_target"] is None


def test_a_rank_is_the_least_number_of_candidates_that_offers_the_term(shipped: Retriever) -> None:
    request = "wine, beer and energy prices in the Baltics and Spain, percent change"
    ranks = shipped.candidates(request).ranks
    assert ranks["GSO.PRC:CPI", "ITEM"]
    assert [ranks["GSO.PRC:CPI", "REF_AREA"][pair] for pair in [("EST", "Estonia"), ("ESP", "Spain")]] == [1, 1]
    for most in (3, 9):
        for place, terms in Retriever(shipped.catalogue, most, 20).candidates(request).places.items():
            if place in ranks:
                assert {term.pair for term in terms} == {pair for pair, rank in ranks[place].items() if rank <= most}


def test_ranks_go_into_the_terms_and_their_recall_into_the_figures_by_dimension() -> None:
    """Three of the four indicators of a target are searched for, one is found first, one third, one never."""
    rows = [
        ("c1", "ITEM", "tp", True, False, 1),
        ("c1", "ITEM", "fn", True, False, 21),
        ("c1", "ITEM", "fn", True, False, None),
        ("c1", "ITEM", "fp", True, False, 2),
        ("c1", "ITEM", "fn", True, True, None),
        ("c1", "FLOW", "tp", False, False, None),
        ("c2", "AREA", "tp", True, False, 5),
    ]
    names = ("case_id", "dimension", "verdict", "searched", "from_target", "retrieval_rank")
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})
    table = table.append_column("sample", pa.array([0] * len(rows)))
    found = {(figure.metric, figure.split_value): figure.values for figure in retrieval_recalls(table)}
    at = "case_retrieval_recall_at_"
    assert found[f"{at}5", "ITEM"] == {("c1", 0): pytest.approx(1 / 3)}
    assert found[f"{at}20", "ITEM"] == {("c1", 0): pytest.approx(1 / 3)}
    assert found[f"{at}50", "ITEM"] == {("c1", 0): pytest.approx(2 / 3)}
    assert found[f"{at}5", "AREA"] == {("c2", 0): 1.0}
    assert found[f"{at}50", "all"] == {("c1", 0): pytest.approx(2 / 3), ("c2", 0): 1.0}
    assert (f"{at}50", "FLOW") not in found


def test_the_rank_of_a_judged_term_is_kept_in_the_evidence() -> None:
    case = case_of(("population of Mexico", {"D:ONE INDICATOR": ["POP"], "D:ONE COUNTRY": ["MEX", "ARG"]}), most=2)
    attempt = attempt_at(case, case.turns[0], response({"D:ONE COUNTRY": ["MEX"]}))
    rows = TRACK.table_rows(case, case.turns[0], [attempt], evidence_of(case, case.turns[0], attempt))["sdmx_terms"]
    assert {row["id"]: (row["searched"], row["retrieval_rank"], row["retrieved"]) for row in rows} == {
        "POP": (True, 1, True),
        "MEX": (True, 1, True),
        "ARG": (True, None, False),
    }


def test_of_what_the_shipped_suite_asks_for_everything_is_named_and_nearly_everything_is_offered() -> None:
    """By a country, or a word of its id, name or synonyms; small dimensions may be asked for otherwise."""
    unsaid, offers = [], []
    for case in sample_cases():
        retriever: Retriever = case.context.retriever
        for turn in case.turns:
            request, found = case.context.requests[turn.index], case.context.candidates(turn)
            said, countries = set(words(request)), countries_in(request)
            for (data_set, dimension), terms in turn.gold.target.places.items():
                offers += [found.offers((data_set, dimension), term) for term in terms]
                if len(retriever.catalogue.data_sets[data_set].dimensions[dimension].codes.terms) <= retriever.most:
                    continue
                for id, name in terms:
                    (term, *_) = retriever.catalogue.find(data_set, dimension, id)
                    named = said & set(words(" ".join([id, name, *term.synonyms])))
                    if not named and country_of(id, name) not in countries:
                        unsaid.append(f"{turn.id}: {id} {name}")
    assert unsaid == []
    assert len(offers) > 300
    assert sum(offers) / len(offers) >= 0.98


def test_the_prompt_shows_candidates_and_shares_what_every_turn_has() -> None:
    case = sample_cases()[0]
    prompts = [TRACK.prompt(case, turn, ["" for _ in range(turn.index)], "selection-2") for turn in case.turns]
    other = TRACK.prompt(sample_cases()[5], sample_cases()[5].turns[0], [], "selection-2")
    assert prompts[0].shared == 2
    assert prompts[0].messages[:2] == other.messages[:2]
    last = prompts[0].messages[-1].text
    assert case.turns[0].question in last
    assert all(f"{id} = " in last for id, _ in case.turns[0].gold.target.places["GSO.PRC:CPI", "REF_AREA"])
    assert "IX = Index" in prompts[0].messages[1].text


def test_a_search_that_offers_others_has_a_new_name_of_the_prompt(measured: SuiteCases) -> None:
    """If this fails because the search or the text changed, give `prompt_versions` another name, here too."""
    texts = (TRACK.prompt(case, case.turns[0], [], TRACK.prompt_versions[-1]).text() for case in measured.cases[:60])
    assert TRACK.prompt_versions == ("selection-2",)
    assert sha256("\n".join(texts).encode()).hexdigest()[:16] == "f98603a374add4b8"


def test_prompt_and_evidence_lead_fingerprints_to_the_search() -> None:
    """Else turns would not be asked again when the search offers other candidates."""
    found = Fingerprints()
    for name in ("prompt_parts", "gather", "turn_row"):
        reached = found.reached(*methods(TRACK, name))
        assert {place.partition(":")[0].rpartition(".")[2] for place in reached} >= {"index", "everyday", "given"}, name


def index_of(*names: str) -> Index:
    return Index(CodeList("L", tuple(Term(f"C{place}", name) for place, name in enumerate(names))))


def best(found: Index, request: str, most: int = 3, otherwise: tuple[str, ...] = ()) -> list[str]:
    parts = [tuple(words(part)) for part in request.split(",")]
    asked = [tuple(words(request)), *(parts if len(parts) > 1 else ())]
    return [term.name for term in found.best(asked, most, [tuple(words(text)) for text in otherwise])]


def test_a_whole_name_in_the_request_is_among_the_first() -> None:
    old = [f"Old money number {place}, rate to the euro per euro" for place in range(30)]
    assert "Euro" in best(index_of(*old, "Euro"), "exports to the old money area, in euro", 3)


def test_a_name_that_many_terms_have_decides_nothing() -> None:
    names = [*("Other" for _ in range(6)), "Other fish"]
    assert best(index_of(*names), "other fish", 1) == ["Other fish"]


def test_the_main_words_of_a_name_count_like_a_name() -> None:
    found = index_of(
        "Flours of soya beans; soya bean flour: soya", "Oil of soya beans, soya bean oil", "Soya beans, broken"
    )
    assert best(found, "soya beans", 1) == ["Soya beans, broken"]


def test_other_wordings_give_terms_that_the_request_does_not_name() -> None:
    found = index_of("Automatic data processing machines, portable", "Washing machines", "Bread")
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
    assert best(index_of("Danish krone", "Yogurt", "New sheqel", "Tooth brushes", "Smartphones"), said) == [meant]


def test_an_unknown_word_that_is_like_no_other_finds_nothing() -> None:
    assert list(NearWords({"krone": 0, "c0012": 1}).instead(("xyzzy", "c0013", "kr"))) == []


def test_asking_for_more_does_not_change_the_first() -> None:
    found = index_of(
        *(f"{kind} of {stuff}" for kind in ("Oil", "Flour", "Seed") for stuff in ("soya", "maize", "rape"))
    )
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


@pytest.fixture(scope="module")
def measured() -> SuiteCases:
    return read_suite(read_header(EVERYDAY))


def test_it_asks_over_lists_of_thousands_of_codes(measured: SuiteCases) -> None:
    assert not measured.problems
    assert len(measured.cases) >= 150
    lists = measured.cases[0].context.catalogue.code_lists()
    assert max(len(codes.terms) for codes in lists.values()) > 2_000


def test_its_halves_go_by_the_hash_of_the_id(measured: SuiteCases) -> None:
    for case in measured.cases:
        even = int(sha256(case.id.encode()).hexdigest(), 16) % 2 == 0
        assert case.tags == ("half_a" if even else "half_b",)


def test_of_each_half_nearly_everything_is_among_the_first_twenty(measured: SuiteCases) -> None:
    offered: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for case in measured.cases:
        (turn,) = case.turns
        found = case.context.candidates(turn)
        for (data_set, dimension), terms in turn.gold.target.places.items():
            offered[case.tags[0], dimension] += [found.offers((data_set, dimension), term) for term in terms]
    shares = {place: sum(known) / len(known) for place, known in offered.items()}
    assert min(shares["half_a", "GOODS"], shares["half_b", "GOODS"]) >= 0.9
    assert shares["half_a", "CURRENCY"] == shares["half_b", "CURRENCY"] == 1


def test_most_of_what_strangers_ask_for_is_among_the_first_twenty(measured: SuiteCases) -> None:
    """The questions about goods; docs/sdmx.md has the share of all."""
    retriever: Retriever = measured.cases[0].context.retriever
    asked = [found for found in strangers() if found["list"] == "goods"]
    offered = [
        code in ids(retriever, found["question"], "EVD:GOODS_TRADE", "GOODS")
        for found in asked
        for code in found["codes"]
    ]
    assert len(asked) == 40
    assert sum(offered) / len(offered) >= 0.9


def test_a_currency_that_the_request_says_is_offered(measured: SuiteCases) -> None:
    """Twenty-two old currencies have "euro" in their longer names."""
    for case in measured.cases:
        request = case.context.requests[0]
        if "euro" in request.lower().split():
            found = case.context.candidates(case.turns[0]).places["EVD:GOODS_TRADE", "CURRENCY"]
            assert "EUR" in [term.id for term in found[:5]], request
