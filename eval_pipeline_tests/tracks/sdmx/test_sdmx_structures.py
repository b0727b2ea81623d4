"""Reading structure messages and lists of terms: every format, references, hierarchies, versions, and what is wrong."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.store.tables import arrow_schema
from eval_pipeline.tracks.sdmx.catalogue.catalogue import DataSet, Term
from eval_pipeline.tracks.sdmx.catalogue.source import catalogue_of, catalogue_rows, load_catalogue, read_catalogue
from eval_pipeline.tracks.sdmx.catalogue.structures import read_data_sets, read_structures
from eval_pipeline.tracks.sdmx.catalogue.suite_tables import SUITE_TABLES
from eval_pipeline.tracks.sdmx.catalogue.term_lists import ListedTerm, read_terms, with_listed, write_terms
from eval_pipeline_tests import outside
from eval_pipeline_tests.tracks.sdmx.helpers import SAMPLE, retriever

POP_SYNONYMS = ("inhabitants", "number of people")
_DATA_MESSAGE = (
    '<?xml version="1.0"?><m:GenericData xmlns:m="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message"/>'
)
SHIPPED = sorted((SAMPLE / "structures").iterdir())


TRADE = SAMPLE / "structures" / "merchandise_trade.json"


def trade(agency: str = "GSO.EXT") -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The shipped message in JSON, of another agency; and its code lists by id."""
    message = json.loads(TRADE.read_text().replace("GSO.EXT", agency))
    return message, {found["id"]: found for found in message["data"]["codelists"]}


def apart(folder: Path, message: dict[str, Any], old: str, new: str) -> dict[str, DataSet]:
    """What is read where the code lists are a file of their own, as the IMF has them."""
    lists = {"meta": message["meta"], "data": {"codelists": message["data"].pop("codelists")}}
    (folder / "flow.json").write_text(json.dumps(message).replace(old, new))
    (folder / "lists.json").write_text(json.dumps(lists))
    paths = [*sorted(folder.iterdir()), SAMPLE / "structures" / "consumer_prices.xml"]
    return {data_set.id: data_set for data_set in read_data_sets(paths, "x")[0]}


def shipped() -> dict[str, DataSet]:
    return dict(catalogue_of(SHIPPED, "structures").data_sets)


def test_the_three_formats_are_read_with_everything_that_is_asked_of_them() -> None:
    found = shipped()
    assert {id: [len(d.codes.terms) for d in data_set.dimensions.values()] for id, data_set in found.items()} == {
        "GSO.NA:ANA": [236, 329, 3, 3],
        "GSO.PRC:CPI": [238, 133, 6, 3],
        "GSO.EXT:TRADE": [238, 238, 5, 132, 7, 3],
    }
    assert "TIME_PERIOD" not in found["GSO.NA:ANA"].dimensions
    assert found["GSO.EXT:TRADE"].name == "Merchandise trade"
    assert found["GSO.EXT:TRADE"].dimensions["REPORTER"].name == "Reporting economy"


@pytest.mark.parametrize(
    ("data_set", "dimension", "expected"),
    [
        ("GSO.NA:ANA", "INDICATOR", Term("POP", "Population, persons", "Residents at mid-year.", "", POP_SYNONYMS)),
        ("GSO.NA:ANA", "INDICATOR", Term("SAV_PD", "Gross saving, implicit price deflator, index", "", "SAV")),
        ("GSO.PRC:CPI", "ITEM", Term("CP0111", "Cereals and cereal products", "", "CP011")),
        ("GSO.EXT:TRADE", "COMMODITY", Term("SITC331", "Crude petroleum", "", "SITC33", ("crude oil",))),
    ],
)  # fmt: skip
def test_codes_have_their_description_parent_and_synonyms(data_set: str, dimension: str, expected: Term) -> None:
    (term,) = shipped()[data_set].dimensions[dimension].codes.by_id[expected.id]
    assert term == expected


def test_versions_of_one_code_list_stay_apart() -> None:
    found = shipped()
    lists = {id: next(iter(data_set.dimensions.values())).codes for id, data_set in found.items()}
    assert lists["GSO.NA:ANA"].id == "GSO:CL_AREA(1.0)"
    assert lists["GSO.PRC:CPI"].id == lists["GSO.EXT:TRADE"].id == "GSO:CL_AREA(2.0.0)"
    assert "XKX" in lists["GSO.PRC:CPI"].by_id
    assert "XKX" not in lists["GSO.NA:ANA"].by_id


def test_a_message_may_begin_with_a_byte_order_mark_and_hold_half_of_an_emoji(tmp_path: Path) -> None:
    message, lists = trade("OTHER")
    lists["CL_UNIT"]["codes"][0] |= {"name": "cut \ud83d", "names": {"en": "cut \ud83d"}}
    (tmp_path / "other.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(message).encode())
    found = catalogue_of([*SHIPPED, tmp_path / "other.json"], "x").data_sets
    assert "cut \ufffd" in [term.name for term in found["OTHER:TRADE"].dimensions["UNIT"].codes.terms]


def test_lists_of_one_name_of_several_agencies_stay_apart(tmp_path: Path) -> None:
    message, units = trade("OTHER")
    del units["CL_UNIT"]["codes"][2:]
    (tmp_path / "other.json").write_text(json.dumps(message))
    found = catalogue_of([*SHIPPED, tmp_path / "other.json"], "x").data_sets
    lists = [found[id].dimensions["UNIT"].codes for id in ("GSO.EXT:TRADE", "OTHER:TRADE")]
    assert [(codes.id, len(codes.terms)) for codes in lists] == [
        ("GSO.EXT:CL_UNIT(1.0.0)", 7),
        ("OTHER:CL_UNIT(1.0.0)", 2),
    ]


def test_the_newest_version_of_a_dataflow_has_the_short_name(tmp_path: Path) -> None:
    newer = (SAMPLE / "structures" / "consumer_prices.xml").read_text()
    urn = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=GSO.PRC:CPI"
    flow = f'id="CPI" agencyID="GSO.PRC" version="{{0}}" urn="{urn}({{0}})"'
    older = newer.replace(flow.format("2.1.0"), flow.format("2.0.0")).replace("Consumer prices", "Old consumer prices")
    assert older != newer
    for name, text in (("older.xml", older), ("newer.xml", newer)):
        (tmp_path / name).write_text(text)
    found = catalogue_of(sorted(tmp_path.iterdir()), "x").data_sets
    assert {id: data_set.name for id, data_set in found.items()} == {
        "GSO.PRC:CPI": "Consumer prices",
        "GSO.PRC:CPI(2.0.0)": "Old consumer prices",
    }


def test_a_wildcard_reference_takes_the_newest_that_fits_of_another_file(tmp_path: Path) -> None:
    message, lists = trade()
    message["data"]["codelists"] += [{**lists["CL_FLOW"], "version": version} for version in ("1.2.0", "2.0.0")]
    dimensions = apart(tmp_path, message, "CL_FLOW(1.0.0)", "CL_FLOW(1.0+)")["GSO.EXT:TRADE"].dimensions
    assert (dimensions["FLOW"].codes.id, len(dimensions["FLOW"].codes.terms)) == ("GSO.EXT:CL_FLOW(1.2.0)", 5)
    assert len(dimensions["COMMODITY"].codes.terms) == 132


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("broken.xml", "<?xml version='1.0'?>\n<mes:Structure>\n", "broken.xml"),
        ("prose.xml", "no XML at all", "prose.xml:1: is no SDMX structure message"),
        ("other.json", "{\n  \"a\": 1,\n}", "other.json"),
        ("strange.txt", "x", "strange.txt: expected SDMX structure messages (.xml, .json, .gz, .zip) and "),
        ("terms.csv", "dataset_id,dimension\nA,B\n", "terms.csv:1: a list of terms needs the columns dataset_id, "),
        ("terms.csv", "dataset_id,dimension,id,name\nA,B,C,\n", "terms.csv:2: name: must not be empty"),
        ("terms.csv", "dataset_id,dimension,id,name\nA,B, ,d\n", "terms.csv:2: id: must not be empty"),
        ("empty.xml", "", "empty.xml: is no SDMX structure message: it is empty"),
        ("data.xml", _DATA_MESSAGE, "data.xml: is no SDMX structure message: it holds 'GenericData', expected "),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_named(tmp_path: Path, name: str, text: str, expected: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=re.escape(expected)):
        catalogue_of([tmp_path / name], "structures")


def test_messages_without_any_data_set_that_can_be_used_name_what_is_missing(tmp_path: Path) -> None:
    message, _ = trade()
    del message["data"]["codelists"]
    (tmp_path / "trade.json").write_text(json.dumps(message))
    with pytest.raises(InputError) as caught:
        read_data_sets([tmp_path / "trade.json"], "my_suite/structures")
    told = str(caught.value)
    assert "my_suite/structures: no structure message holds the code list GSO.EXT:CL_FLOW(1.0.0)" in told
    assert "dimension FLOW of GSO.EXT:TRADE" in told
    assert "CL_AREA" in told


def test_listed_terms_extend_a_dimension_for_their_data_set_alone() -> None:
    before = list(shipped().values())
    new = ListedTerm("GSO.PRC:CPI", "REF_AREA", "MARS", "Mars", from_target="true")
    other_name = ListedTerm("GSO.PRC:CPI", "REF_AREA", "MEX", "United Mexican States")
    known = ListedTerm("GSO.PRC:CPI", "MEASURE", "IX", "Index")
    found = with_listed(before, [new, other_name, known, ListedTerm("X:NEW", "D", "A", "a", "The new one")])
    areas = found["GSO.PRC:CPI"].dimensions["REF_AREA"].codes
    assert areas.id == "GSO.PRC:CPI/REF_AREA"
    assert areas.terms[-2:] == (Term("MARS", "Mars", from_target=True), Term("MEX", "United Mexican States"))
    assert {term.name for term in areas.by_id["MEX"]} == {"Mexico", "United Mexican States"}
    assert found["GSO.PRC:CPI"].dimensions["MEASURE"].codes.id == "GSO.PRC:CL_MEASURE(1.0.0)"
    assert "MARS" not in found["GSO.EXT:TRADE"].dimensions["REPORTER"].codes.by_id
    assert found["X:NEW"].name == "The new one"


def test_a_list_of_terms_survives_its_file(tmp_path: Path) -> None:
    terms = [ListedTerm("A:B", "D", "1", 'one, "quoted"\nand more', "n", "d", "0", "eins; un", "true")]
    write_terms(tmp_path / "t.csv", terms)
    assert read_terms(tmp_path / "t.csv") == terms
    assert terms[0].term().synonyms == ("eins", "un")


def test_the_catalogue_survives_its_tables() -> None:
    import pyarrow as pa

    rows = catalogue_rows(read_catalogue(SAMPLE, {}).catalogue)
    tables = {}
    for table in SUITE_TABLES:
        fields = [field for field in arrow_schema(table) if field.name in rows[table.name]]
        tables[table.name] = pa.table({n: list(v) for n, v in rows[table.name].items()}, schema=pa.schema(fields))
    loaded = load_catalogue(tables, {})
    assert loaded.catalogue == read_catalogue(SAMPLE, {}).catalogue
    assert catalogue_rows(loaded.catalogue) == rows


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"data_sets": ["GSO.NA:GDP"]}, "options.data_sets: the catalogue has no data set 'GSO.NA:GDP'; it has GSO"),
        ({"candidates": 0}, "options.candidates: expected a number of at least 1, found 0"),
        ({"candidate": 5}, "options.candidate: unknown field; allowed: "),
        ({"structures": ["nothing/*.xml"]}, "options.structures: no file there describes a data set"),
    ],
)
def test_wrong_options_are_told(options: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError, match=re.escape(expected)):
        read_catalogue(SAMPLE, options)


def test_a_data_set_with_brackets_is_left_out_only_beside_a_newer_one(tmp_path: Path) -> None:
    (tmp_path / "structures").mkdir()
    names = ("X:OLD(1.0)", "X:OLD", "X:ALONE(2020)")
    write_terms(tmp_path / "structures" / "t.csv", [ListedTerm(name, "D", "A", "a") for name in names])
    assert list(read_catalogue(tmp_path, {}).catalogue.data_sets) == ["X:OLD", "X:ALONE(2020)"]


@pytest.mark.parametrize("asked", ["GSO.PRC:CPI", "GSO.PRC:CPI(2.1.0)", "GSO.PRC:CPI(2.0+)", "GSO.PRC:CPI(latest)"])
def test_data_sets_may_be_chosen(asked: str) -> None:
    assert list(read_catalogue(SAMPLE, {"data_sets": [asked]}).catalogue.data_sets) == ["GSO.PRC:CPI"]


def test_an_unknown_code_is_told_with_what_is_near_it() -> None:
    catalogue = read_catalogue(SAMPLE, {}).catalogue
    problem = catalogue.term_problem("GSO.NA:ANA", "INDICATOR", "GDP_PHC")
    assert problem is not None
    assert problem.startswith("dimension 'INDICATOR' of data set 'GSO.NA:ANA' has no code 'GDP_PHC'; near it: GDP_PCH")
    assert retriever().catalogue.data_set_problem("D:ONE") is None


@outside.needs(outside.SDMX)
def test_all_codes_of_the_imf_files_are_read() -> None:
    paths = sorted((outside.SDMX / "imf_codelists").glob("*.xml"))
    declared = sum(path.read_text(encoding="utf-8").count("<str:Code ") for path in paths)
    assert declared == 2809
    found = {data_set.id: data_set for data_set in read_data_sets(paths, "imf")[0]}
    assert list(found) == ["IMF.STA:CPI(3.0.1)", "IMF.STA:CPI"]
    sizes = {name: len(dimension.codes.terms) for name, dimension in found["IMF.STA:CPI"].dimensions.items()}
    expected = {"COUNTRY": 337, "INDEX_TYPE": 49, "COICOP_1999": 15, "TYPE_OF_TRANSFORMATION": 7, "FREQUENCY": 6}
    assert sizes == expected
    assert found["IMF.STA:CPI"].dimensions["COUNTRY"].codes.by_id["ALB"][0].name == "Albania"
    versions = [data_set.dimensions["TYPE_OF_TRANSFORMATION"].codes.id for data_set in found.values()]
    assert versions == [f"IMF.STA:CL_CPI_TYPE_OF_TRANSFORMATION({number})" for number in ("3.1.0", "4.0.0")]


@outside.needs(outside.SDMX)
def test_the_hierarchy_of_a_real_list_is_kept() -> None:
    found = read_structures([outside.SDMX / "imf_codelists" / "codelist_IMF-CL_TOPIC(2.2.0).xml"])
    parents = {term.id: term.parent for term in found.artefacts.code_lists["IMF", "CL_TOPIC", "2.2.0"]}
    assert parents["J64"] == "J20"
