"""Catalogues: structure messages and lists of terms, versions, constraints, missing parts, lists that extend others."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.store.tables import arrow_schema
from eval_pipeline.tracks.base import CaseError
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue, CodeList, DataSet, Dimension, Term
from eval_pipeline_plugins.tracks.sdmx.catalogue.source import (
    catalogue_of,
    catalogue_rows,
    load_catalogue,
    read_catalogue,
)
from eval_pipeline_plugins.tracks.sdmx.catalogue.term_lists import ListedTerm, read_terms, with_listed, write_terms
from eval_pipeline_plugins.tracks.sdmx.catalogue.versions import fits
from eval_pipeline_plugins.tracks.sdmx.messages.structures import read_data_sets, read_structures
from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Retriever
from eval_pipeline_plugins.tracks.sdmx.tables import SUITE_TABLES
from eval_pipeline_plugins.tracks.sdmx.track import TRACK
from eval_pipeline_tests import outside
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.sdmx.helpers import (
    SAMPLE,
    attempt_at,
    evidence_of,
    measured,
    raw_case,
    response,
    retriever,
)
from eval_pipeline_tests.tracks.sdmx.test_sdmx_agencies import URN, json_message, message, parts

AREAS = Dimension("COUNTRY", "Country", CodeList("A:AREA(1.0)", (Term("MEX", "Mexico"), Term("ARG", "Argentina"))))


def catalogue(*ids: tuple[str, str], available: dict[str, frozenset[str]] | None = None) -> Catalogue:
    sets = (DataSet(id, "a data set", "", version, {"COUNTRY": AREAS}, available or {}) for id, version in ids)
    return Catalogue({found.id: found for found in sets})


SEVERAL = catalogue(("A:B", "9.1.0"), ("A:B(9.0.0)", "9.0.0"), ("A:B(8.2.0)", "8.2.0"), ("L:LIST", ""))


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("A:B", "A:B"),
        ("A:B(9.1.0)", "A:B"),
        ("A:B(9.0.0)", "A:B(9.0.0)"),
        ("A:B(9.0+)", "A:B"),
        ("A:B(9.0.0+)", "A:B(9.0.0)"),
        ("A:B(8.0+)", "A:B(8.2.0)"),
        ("A:B(8+)", "A:B"),
        ("A:B(8.*)", "A:B(8.2.0)"),
        ("A:B(*)", "A:B"),
        ("A:B(latest)", "A:B"),
        ("L:LIST(3.0)", "L:LIST"),
        ("A:B(7.0)", None),
        ("A:B(9.2+)", None),
        ("A:BB(*)", None),
        ("A:B(", None),
        ("B", None),
    ],
)
def test_an_id_with_a_version_or_a_wildcard_means_the_newest_data_set_that_fits(asked: str, meant: str | None) -> None:
    assert SEVERAL.meant(asked) == (meant or asked)
    assert (SEVERAL.meant(asked) in SEVERAL.data_sets) == (meant is not None)


def test_a_short_name_means_the_newest_of_what_has_versions_alone() -> None:
    assert catalogue(("A:B(1.0)", "1.0"), ("A:B(1.10)", "1.10"), ("A:B(1.9)", "1.9")).meant("A:B") == "A:B(1.10)"


@pytest.mark.parametrize(
    ("version", "asked", "expected"),
    [
        ("1.2.9", "1.2.3+", True),
        ("1.3.0", "1.2.3+", False),
        ("1.3", "1.2+", True),
        ("2.0", "1.2+", False),
        ("2.0", "1+", True),
        ("0.9", "1+", False),
        ("1.5", "1.*", True),
        ("2.5", "1.*", False),
    ],
)
def test_a_plus_lets_its_number_and_those_after_it_grow(version: str, asked: str, *, expected: bool) -> None:
    assert fits(version, asked) is expected


def versioned_case(target: str, held: Catalogue = SEVERAL) -> Any:
    return TRACK.read_case(
        raw_case(("which?", {f"{target} COUNTRY": ["MEX"]})), "suite", "cases/one.yaml", 1, Retriever(held, 20, 20)
    )


@pytest.mark.parametrize("target", ["A:B", "A:B(9.1.0)", "A:B(*)"])
@pytest.mark.parametrize("said", ["A:B", "A:B(9.1.0)", "A:B(9.0+)", "A:B(latest)"])
def test_target_and_answer_that_mean_one_data_set_agree_and_what_they_wrote_is_kept(target: str, said: str) -> None:
    case = versioned_case(target)
    turn = case.turns[0]
    attempt = attempt_at(case, turn, response({f"{said} COUNTRY": ["MEX"]}))
    assert measured(case, turn, attempt)["exact_selection"]
    (row,) = TRACK.table_rows(case, turn, [attempt], evidence_of(case, turn, attempt))["sdmx_dimensions"]
    assert (row["dataset_id"], row["said_as"], row["target_as"]) == (
        "A:B",
        None if said == "A:B" else said,
        None if target == "A:B" else target,
    )


def test_another_version_is_another_data_set() -> None:
    case = versioned_case("A:B")
    turn = case.turns[0]
    found = measured(case, turn, attempt_at(case, turn, response({"A:B(9.0.0) COUNTRY": ["MEX"]})))
    assert (found["failure_mode"], found["false_positives"]) == ("wrong_data_sets", 1)
    unknown = attempt_at(case, turn, response({"A:B(7.0) COUNTRY": ["MEX"]}))
    assert "no data set 'A:B(7.0)', but A:B in version 9.1.0" in str(unknown.outcome)
    with pytest.raises(CaseError, match=r"no data set 'A:B\(7.0\)', but A:B in version 9.1.0"):
        versioned_case("A:B(7.0)")


WITH_DATA = {"COUNTRY": frozenset({"MEX"})}


def test_a_valid_code_without_data_is_a_failure_mode_of_its_own() -> None:
    case = versioned_case("A:B", catalogue(("A:B", "1.0"), available=WITH_DATA))
    turn = case.turns[0]
    for said in (["MEX", "ARG"], ["ARG"]):
        attempt = attempt_at(case, turn, response({"A:B COUNTRY": said}))
        found = measured(case, turn, attempt)
        assert (found["failure_mode"], found["valid_selection"], found["has_error"]) == ("no_data", True, False)
        rows = TRACK.table_rows(case, turn, [attempt], evidence_of(case, turn, attempt))["sdmx_terms"]
        assert ("ARG", True, "no_data") in [(row["id"], row["valid"], row["doubt"]) for row in rows]
    damaged = TRACK.damage(case, turn, "no_data", Random(1))
    assert damaged is not None
    assert measured(case, turn, attempt_at(case, turn, damaged))["failure_mode"] == "no_data"
    open_case = versioned_case("A:B", catalogue(("A:B", "1.0")))
    plain = attempt_at(open_case, turn, response({"A:B COUNTRY": ["ARG"]}))
    assert measured(open_case, open_case.turns[0], plain)["failure_mode"] == "swapped_terms"


def test_codes_with_data_survive_the_record_and_terms_that_are_added_count_as_having_data() -> None:
    import pyarrow as pa

    held = catalogue(("A:B", "1.0"), available=WITH_DATA)
    rows = catalogue_rows(held)
    found = {table.name: pa.table(rows[table.name]) for table in SUITE_TABLES}
    assert all({*found[table.name].schema.names} <= {*arrow_schema(table).names} for table in SUITE_TABLES)
    assert load_catalogue(found, {}).catalogue.data_sets["A:B"].available == WITH_DATA
    listed = with_listed(list(held.data_sets.values()), [ListedTerm("A:B", "COUNTRY", "EST", "Estonia")])
    assert listed["A:B"].available == {"COUNTRY": {"MEX", "EST"}}


def test_a_missing_code_list_leaves_out_its_dimension_and_the_cases_that_use_it(tmp_path: Path) -> None:
    folder = tmp_path / "structures"
    folder.mkdir()
    for number, part in enumerate(parts("v2_1")):
        if number != 4:
            (folder / f"{number}.xml").write_text(message("v2_1", part))
    held = read_catalogue(tmp_path, {})
    assert list(held.catalogue.data_sets["A:F"].dimensions) == ["AREA"]
    why = "no structure message holds the code list A:CL_UNIT(1.0) of dimension UNIT of A:F"
    assert TRACK.shared_notes(held) == [f"dimension UNIT of A:F cannot be used: {why}"]
    good = {"A:F AREA": [{"id": "W", "name": "World"}]}
    assert TRACK.read_case(raw_case(("which?", good)), "s", "c.yaml", 1, held).turns
    bad = {**good, "A:F UNIT": [{"id": "EUR", "name": "Euro"}]}
    with pytest.raises(CaseError) as caught:
        TRACK.read_case(raw_case(("which?", bad)), "s", "c.yaml", 1, held)
    assert f"dimension 'UNIT' of data set 'A:F' cannot be used: {why}" in str(caught.value)


def test_a_data_set_whose_structure_is_missing_is_told_and_others_are_used(tmp_path: Path) -> None:
    folder = tmp_path / "structures"
    folder.mkdir()
    (folder / "good.xml").write_text(message("v3_0", *parts("v3_0")))
    lonely = parts("v3_0")[0].replace('id="F"', 'id="G"').replace("A:S(1.0)", "A:T(1.0)")
    (folder / "lonely.xml").write_text(message("v3_0", lonely))
    held = read_catalogue(tmp_path, {})
    assert list(held.catalogue.data_sets) == ["A:F"]
    why = "no structure message holds the data structure A:T(1.0) of dataflow A:G(1.0)"
    assert TRACK.shared_notes(held) == [f"data set A:G cannot be used: {why}"]
    assert held.catalogue.data_set_problem("A:G") == f"data set 'A:G' cannot be used: {why}"
    with pytest.raises(InputError, match=r"options\.data_sets: data set 'A:G' cannot be used: no struct"):
        read_catalogue(tmp_path, {"data_sets": ["A:G"]})


EXTENSIONS = golden("sdmx_extensions.yaml")
GEO_OF_CL = '<DataStructure id="S" agencyID="A"><DataStructureComponents><DimensionList><Dimension id="GEO">' + (
    f"<ConceptIdentity>{URN}conceptscheme.Concept=A:C(1.0).GEO</ConceptIdentity><LocalRepresentation><Enumeration>"
    f"{URN}codelist.Codelist=A:CL(1.0)</Enumeration></LocalRepresentation></Dimension></DimensionList>"
    "</DataStructureComponents></DataStructure>"
)


def lists_of(entry: dict[str, Any], own: list[str]) -> dict[str, tuple[str, list[dict[str, str]], Any, str]]:
    """Each list of an entry of the golden file: its version, its codes, and its extensions in JSON and in XML."""
    chain = "<CodelistExtension><Codelist>{SECOND}</Codelist></CodelistExtension>"
    found = {name: ("1.1.0", codes, [], "") for name, codes in EXTENSIONS["lists"].items() if name != "OWN"}
    found["CHAIN"] = ("1.0", [], [{"codelist": "{SECOND}"}], chain)
    found["CL"] = ("1.0", own, entry["json"], entry.get("xml", ""))
    return {name: (version, [*map(code_of, codes)], *told) for name, (version, codes, *told) in found.items()}


def code_of(text: str) -> dict[str, str]:
    """`id`, `id < parent` or `id = name`."""
    id, _, name = text.partition(" = ")
    id, _, parent = id.partition(" < ")
    return {"id": id, "name": name or id, **({"parent": parent} if parent else {})}


def with_urns(text: str) -> str:
    return re.sub(r"\{([A-Z]+)\}", rf"{URN}codelist.Codelist=A:\1(1.0+)", text)


def written(folder: Path, form: str, entry: dict[str, Any], own: list[str]) -> list[Path]:
    """The lists of an entry, each in a message of its own, and a data set with the dimension GEO of the list CL."""
    messages = []
    for name, (version, codes, as_json, as_xml) in lists_of(entry, own).items():
        if form == "json":
            described = {"id": name, "agencyID": "A", "version": version, "codes": codes, "codelistExtensions": as_json}
            messages.append(json.dumps({"data": {"codelists": [described]}}))
        else:
            items = "".join(
                f'<Code id="{code["id"]}"><Name>{code["name"]}</Name><Parent>{code.get("parent", "")}</Parent></Code>'
                for code in codes
            )
            listed = f'<Codelist id="{name}" agencyID="A" version="{version}">{items}{as_xml}</Codelist>'
            messages.append(message("v3_0", listed))
    for number, text in enumerate([*messages, message("v3_0", GEO_OF_CL)]):
        (folder / f"{form}{number}").write_text(with_urns(text))
    return sorted(folder.iterdir())


@pytest.mark.parametrize("form", ["xml", "json"])
@pytest.mark.parametrize("entry", EXTENSIONS["forms"], ids=lambda entry: entry["name"])
def test_a_list_that_extends_others_has_their_codes(tmp_path: Path, form: str, entry: dict[str, Any]) -> None:
    files = written(tmp_path, form, entry, EXTENSIONS["lists"]["OWN"])
    expected = [code_of(text) for text in entry["expected"]]
    names = {code["id"]: code["name"] for code in expected if code["name"] != code["id"]}
    for seed in range(2):
        found = read_structures(Random(seed).sample(files, len(files)))
        terms = found.data_sets[0].dimensions["GEO"].codes.terms
        assert [(term.id, term.parent) for term in terms] == [(code["id"], code.get("parent", "")) for code in expected]
        assert names.items() <= {term.id: term.name for term in terms}.items()
        assert (found.missing, found.remarks) == ((), ())


@pytest.mark.parametrize("form", ["xml", "json"])
@pytest.mark.parametrize("entry", EXTENSIONS["told"], ids=lambda entry: entry["name"])
def test_what_is_wrong_with_an_extension_is_told(tmp_path: Path, form: str, entry: dict[str, Any]) -> None:
    if form not in entry:
        return
    files = written(tmp_path, form, entry, [])
    try:
        found = read_structures(files)
    except InputError as error:
        (problem,) = error.problems
        assert (Path(problem.file).name[:-1], problem.message) == (form, entry["sentence"])
        return
    told = [*found.remarks, *(missing.sentence for missing in found.missing)]
    assert [entry["sentence"] in sentence for sentence in told].count(True) == 1
    (data_set,) = found.data_sets
    with_codes = [dimension.id for dimension in data_set.dimensions.values() if dimension.codes.terms]
    assert [*with_codes, *data_set.lacking] == ["GEO"]  # never an empty dimension in silence


def test_available_data_is_read_from_json(tmp_path: Path) -> None:
    constraint = {
        "id": "K",
        "agencyID": "A",
        "constraintAttachment": {"dataStructures": [f"{URN}datastructure.DataStructure=A:S(1.0)"]},
        "cubeRegions": [{"keyValues": [{"id": "GEO", "values": ["FR"]}]}],
    }
    path = json_message(tmp_path / "m.json", availabilityConstraints=[constraint], dataflows=[])
    (data_set,) = read_structures([path]).data_sets
    assert data_set.available == {"GEO": {"FR"}}


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
