"""What a catalogue makes of versions, constraints, missing parts and lists that extend others."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.store.tables import arrow_schema
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.sdmx.catalogue.catalogue import Catalogue, CodeList, DataSet, Dimension, Term
from eval_pipeline.tracks.sdmx.catalogue.source import catalogue_rows, load_catalogue, read_catalogue
from eval_pipeline.tracks.sdmx.catalogue.structures import read_structures
from eval_pipeline.tracks.sdmx.catalogue.suite_tables import SUITE_TABLES
from eval_pipeline.tracks.sdmx.catalogue.term_lists import ListedTerm, with_listed
from eval_pipeline.tracks.sdmx.catalogue.versions import fits
from eval_pipeline.tracks.sdmx.retrieval import Retriever
from eval_pipeline.tracks.sdmx.track import TRACK
from eval_pipeline_tests.tracks.sdmx.helpers import attempt_at, evidence_of, measured, raw_case, response
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


CODES = (
    '<Codelist id="BASE" agencyID="A" version="1.1.0"><Code id="T"><Name>Top</Name></Code>'
    "<Code id='T1'><Name>One</Name><Parent>T</Parent></Code>"
    "<Code id='T11'><Name>One one</Name><Parent>T1</Parent></Code>"
    "<Code id='X'><Name>Other</Name></Code></Codelist>"
)
EXTENDING = (
    '<Codelist id="CL_UNIT" agencyID="A" version="1.0"><Code id="OWN"><Name>Own</Name></Code>'
    "<CodelistExtension {prefix}><Codelist>urn:sdmx:org.sdmx.infomodel.codelist.Codelist=A:BASE(1.0+)</Codelist>"
    "{selection}</CodelistExtension></Codelist>"
)


def selected(kind: str, *values: str, children: bool = False) -> str:
    cascade = ' cascadeValues="true"' if children else ""
    members = "".join(f"<MemberValue{cascade}>{value}</MemberValue>" for value in values)
    return f"<{kind}CodeSelection>{members}</{kind}CodeSelection>"


EXTENSIONS = [
    ("", "", ["OWN", "T", "T1", "T11", "X"]),
    ('prefix="P_"', "", ["OWN", "P_T", "P_T1", "P_T11", "P_X"]),
    ("", selected("Inclusive", "T1", "X"), ["OWN", "T1", "X"]),
    ("", selected("Inclusive", "T1", children=True), ["OWN", "T1", "T11"]),
    ("", selected("Inclusive", "T%"), ["OWN", "T", "T1", "T11"]),
    ("", selected("Exclusive", "T", children=True), ["OWN", "X"]),
    ("", selected("Exclusive", "%1"), ["OWN", "T", "X"]),
]


@pytest.mark.parametrize(("prefix", "selection", "expected"), EXTENSIONS)
def test_a_list_that_extends_another_has_its_codes(
    tmp_path: Path, prefix: str, selection: str, expected: list[str]
) -> None:
    held = parts("v3_0")
    held[4] = EXTENDING.format(prefix=prefix, selection=selection)
    for number, part in enumerate([*held, CODES]):
        (tmp_path / f"{number}.xml").write_text(message("v3_0", part))
    files = sorted(tmp_path.iterdir())
    for seed in range(3):
        (data_set,) = read_structures(Random(seed).sample(files, len(files))).data_sets
        assert [term.id for term in data_set.dimensions["UNIT"].codes.terms] == expected


def test_a_list_that_extends_itself_or_a_missing_one_ends(tmp_path: Path) -> None:
    held = parts("v3_0")
    held[4] = EXTENDING.format(prefix="", selection="").replace("A:BASE(1.0+)", "A:CL_UNIT(1.0)")
    (tmp_path / "m.xml").write_text(message("v3_0", *held))
    (data_set,) = read_structures([tmp_path / "m.xml"]).data_sets
    assert [term.id for term in data_set.dimensions["UNIT"].codes.terms] == ["OWN"]
    held[4] = EXTENDING.format(prefix="", selection="")
    (tmp_path / "m.xml").write_text(message("v3_0", *held))
    found = read_structures([tmp_path / "m.xml"])
    assert list(found.data_sets[0].dimensions) == ["AREA"]
    assert [told.sentence for told in found.missing] == [
        "no structure message holds the code list A:BASE(1.0+) of code list A:CL_UNIT(1.0), which extends it"
    ]


def test_extensions_and_available_data_are_read_from_json(tmp_path: Path) -> None:
    chosen = {"memberValues": [{"value": "T", "cascadeValues": True}]}
    extension = {"codelist": f"{URN}codelist.Codelist=A:BASE(1.0)", "prefix": "P", "inclusiveCodeSelection": chosen}
    lists = [
        {"id": "CL", "agencyID": "A", "codelistExtensions": [extension]},
        {"id": "BASE", "agencyID": "A", "codes": [{"id": "T"}, {"id": "U", "parent": "T"}, {"id": "X"}]},
    ]
    constraint = {
        "id": "K",
        "agencyID": "A",
        "constraintAttachment": {"dataStructures": [f"{URN}datastructure.DataStructure=A:S(1.0)"]},
        "cubeRegions": [{"keyValues": [{"id": "GEO", "values": ["PT"]}]}],
    }
    path = json_message(tmp_path / "m.json", codelists=lists, availabilityConstraints=[constraint], dataflows=[])
    (data_set,) = read_structures([path]).data_sets
    assert [(term.id, term.parent) for term in data_set.dimensions["GEO"].codes.terms] == [("PT", ""), ("PU", "PT")]
    assert data_set.available == {"GEO": {"PT"}}
