"""Structure messages: of real agencies, by the standards, packed, split over files in any order, and wrong in part."""

import gzip
import json
import re
import zipfile
from collections.abc import Callable
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from eval_pipeline.cli.app import app
from eval_pipeline.core.errors import InputError
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import DataSet
from eval_pipeline_plugins.tracks.sdmx.catalogue.source import catalogue_notes, catalogue_of
from eval_pipeline_plugins.tracks.sdmx.messages.messages import SUFFIXES
from eval_pipeline_plugins.tracks.sdmx.messages.references import shown
from eval_pipeline_plugins.tracks.sdmx.messages.structures import FoundStructures, read_data_sets, read_structures
from eval_pipeline_tests import outside
from eval_pipeline_tests.goldens import golden

MES = "http://www.sdmx.org/resources/sdmxml/schemas/{version}/message"

FLOW = (
    '<Dataflow id="F" agencyID="A" version="1.0"><Name xml:lang="en">Flow</Name>'
    "<Structure>{structure}</Structure></Dataflow>"
)
STRUCTURE = (
    '<DataStructure id="S" agencyID="A" version="1.0"><DataStructureComponents><DimensionList id="D">'
    '<Dimension id="AREA"><ConceptIdentity>{concept}</ConceptIdentity><LocalRepresentation><Enumeration>{codes}'
    "</Enumeration></LocalRepresentation></Dimension>"
    "<Dimension id='UNIT'><ConceptIdentity>{concept_2}</ConceptIdentity></Dimension>"
    '<TimeDimension id="TIME_PERIOD"/></DimensionList></DataStructureComponents></DataStructure>'
)
SCHEME = (
    '<ConceptScheme id="C" agencyID="A" version="1.0"><Concept id="AREA"><Name>Area</Name></Concept><Concept id="UNIT">'
    '<Name xml:lang="fr">Unité</Name><Name xml:lang="en">Unit</Name><CoreRepresentation><Enumeration>{units}'
    "</Enumeration></CoreRepresentation></Concept></ConceptScheme>"
)
LISTS = (
    '<Codelist id="CL_AREA" agencyID="A" version="1.2"><Code id="W"><Name>World</Name></Code>'
    '<Code id="E"><Name>Europe</Name>{parent}</Code></Codelist>',
    '<Codelist id="CL_UNIT" agencyID="A" version="1.0"><Code id="EUR"><Name>Euro</Name></Code></Codelist>',
)
V3 = {
    "structure": "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=A:S(1.0)",
    "concept": "urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept=A:C(1.0).AREA",
    "concept_2": "urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept=A:C(1.0).UNIT",
    "codes": "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=A:CL_AREA(1.0+)",
    "units": "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=A:CL_UNIT(1.0)",
    "parent": "<Parent>W</Parent>",
    "attached": "<Dataflow>urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=A:F(1.0)</Dataflow>",
}
V2 = {
    "structure": '<Ref id="S" agencyID="A" class="DataStructure"/>',
    "concept": '<Ref id="AREA" maintainableParentID="C" agencyID="A"/>',
    "concept_2": f"<URN>{V3['concept_2']}</URN>",
    "codes": '<Ref id="CL_AREA" agencyID="A" version="1.2"/>',
    "units": '<Ref id="CL_UNIT" agencyID="A" version="1.0"/>',
    "parent": '<Parent><Ref id="W"/></Parent>',
    "attached": '<Dataflow><Ref id="F" agencyID="A" version="1.0"/></Dataflow>',
}
CONSTRAINT = (
    '<{kind} id="K" agencyID="A" version="1.0" {what}><ConstraintAttachment>{attached}</ConstraintAttachment>'
    '<CubeRegion include="true"><KeyValue id="AREA"><Value>E</Value></KeyValue></CubeRegion></{kind}>'
)


URN = "urn:sdmx:org.sdmx.infomodel."
GEO = {
    "conceptIdentity": f"{URN}conceptscheme.Concept=A:C(1.0).GEO",
    "localRepresentation": {"enumeration": f"{URN}codelist.Codelist=A:CL(1.0)"},
}
JSON: dict[str, Any] = {
    "dataflows": [{"id": "F", "agencyID": "A", "structure": f"{URN}datastructure.DataStructure=A:S(1.0)"}],
    "codelists": [{"id": "CL", "agencyID": "A", "codes": [{"id": "FR", "name": "France"}, {"id": "DE"}]}],
    "conceptSchemes": [{"id": "C", "agencyID": "A", "concepts": [{"id": "GEO", "name": "Geography"}]}],
    "dataStructures": [
        {
            "id": "S",
            "agencyID": "A",
            "dataStructureComponents": {"dimensionList": {"dimensions": [GEO]}},
        }
    ],
}


def parts(version: str) -> list[str]:
    form = V2 if version == "v2_1" else V3
    kinds = {"v2_1": ("ContentConstraint", 'type="Actual"'), "v3_0": ("DataConstraint", 'role="Actual"')}
    kind, what = kinds[version]
    return [
        *(text.format(**form) for text in (FLOW, STRUCTURE, SCHEME, *LISTS)),
        CONSTRAINT.format(kind=kind, what=what, **form),
    ]


def message(version: str, *held: str) -> str:
    space = MES.format(version=version)
    return f'<m:Structure xmlns:m="{space}"><m:Structures>{"".join(held)}</m:Structures></m:Structure>'


def check(found: FoundStructures) -> None:
    assert not found.missing
    (data_set,) = found.data_sets
    assert (data_set.id, data_set.name, data_set.available) == ("A:F", "Flow", {"AREA": frozenset({"E"})})
    area, unit = data_set.dimensions.values()
    assert (area.name, area.codes.id, [term.id for term in area.codes.terms]) == ("Area", "A:CL_AREA(1.2)", ["W", "E"])
    assert area.codes.terms[1].parent == "W"
    assert (unit.name, unit.codes.id, unit.codes.terms[0].name) == ("Unit", "A:CL_UNIT(1.0)", "Euro")


@pytest.mark.parametrize("version", ["v2_1", "v3_0"])
def test_a_message_by_the_standard_is_read_whole_packed_and_split_in_any_order(tmp_path: Path, version: str) -> None:
    whole = tmp_path / "whole.xml"
    whole.write_text(message(version, *parts(version)))
    check(read_structures([whole]))
    files = []
    for number, part in enumerate(parts(version)):
        files.append(tmp_path / f"{number}.xml")
        files[-1].write_text(message(version, part))
    for seed in range(6):
        check(read_structures(Random(seed).sample(files, len(files))))
    packed = tmp_path / "whole.xml.gz"
    packed.write_bytes(gzip.compress(whole.read_bytes()))
    check(read_structures([packed]))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for file in files:
            archive.write(file, file.name)
    check(read_structures([tmp_path / "all.zip"]))


@pytest.mark.parametrize("left_out", [1, 2, 3, 4])
def test_what_a_dimension_needs_and_no_message_holds_is_named_with_the_file_that_asks_for_it(
    tmp_path: Path, left_out: int
) -> None:
    for number, part in enumerate(parts("v2_1")):
        if number != left_out:
            (tmp_path / f"{number}.xml").write_text(message("v2_1", part))
    missing = read_structures([*tmp_path.iterdir()]).missing
    told = {(Path(found.file).name, found.what, found.reference) for found in missing}
    expected = {
        1: ("0.xml", "data structure", "A:S"),
        2: ("1.xml", "concept scheme", "A:C(1.0)"),
        3: ("1.xml", "code list", "A:CL_AREA(1.2)"),
        4: ("1.xml", "code list", "A:CL_UNIT(1.0)"),
    }
    assert told == {expected[left_out]}


def json_message(path: Path, **changes: Any) -> Path:
    """A message in SDMX-JSON."""
    path.write_text(json.dumps({"data": JSON | changes}))
    return path


def test_json_of_the_first_version_is_read(tmp_path: Path) -> None:
    constraint = {
        "id": "K",
        "agencyID": "A",
        "type": "Actual",
        "constraintAttachment": {"dataflows": [f"{URN}datastructure.Dataflow=A:F(1.0)"]},
        "cubeRegions": [{"isIncluded": True, "keyValues": [{"id": "GEO", "values": ["FR"]}]}],
    }
    lists = [{"id": "CL", "agencyID": "A", "version": "1.0", "codes": [{"id": "FR", "names": {"en": "France"}}]}]
    path = json_message(tmp_path / "m.json", codelists=lists, contentConstraints=[constraint])
    (data_set,) = read_structures([path]).data_sets
    assert data_set.available == {"GEO": frozenset({"FR"})}
    assert [term.pair for term in data_set.dimensions["GEO"].codes.terms] == [("FR", "France")]


def test_a_damaged_member_of_an_archive_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("good.xml", message("v2_1"))
        archive.writestr("bad.xml", "<a>")
    with pytest.raises(InputError, match=r"all.zip/bad.xml.*is no SDMX structure message"):
        read_structures([tmp_path / "all.zip"])


SPECIMENS = [outside.SDMX / "specimens", outside.SDMX / "imf_codelists"]


def specimens() -> list[Path]:
    return [path for folder in SPECIMENS if folder.is_dir() for path in sorted(folder.glob("*.xml"))]


def read_whole(found: FoundStructures) -> list[Any]:
    """Code lists, dimensions, codes with data, and names of concepts and dataflows."""
    artefacts = found.artefacts
    return [
        {
            shown(at): [[code.id, code.name, code.parent] for code in codes]
            for at, codes in artefacts.code_lists.items()
        },
        {shown(at): [part.id for part in structure.dimensions] for at, structure in artefacts.structures.items()},
        {
            shown(at): {id: sorted(codes) for id, codes in constraint.available.items()}
            for at, constraint in artefacts.constraints.items()
        },
        {shown(at): {id: found.name for id, found in scheme.items()} for at, scheme in artefacts.schemes.items()},
        {shown(at): flow.name for at, flow in artefacts.flows.items()},
    ]


def split(path: Path, folder: Path) -> list[Path]:
    """Writes a message for every artefact of a message."""
    from lxml import etree

    root = etree.parse(path).getroot()
    held = next(root.iter("{*}Structures"))
    files = []
    for group in held:
        for artefact in group:
            if isinstance(artefact.tag, str):
                files.append(folder / f"{path.stem}_{len(files)}.xml")
                alone = etree.Element(root.tag)
                etree.SubElement(etree.SubElement(alone, held.tag), group.tag).append(deepcopy(artefact))
                files[-1].write_bytes(etree.tostring(alone))
    return files


def by_id(found: FoundStructures) -> list[DataSet]:
    return sorted(found.data_sets, key=lambda data_set: data_set.id)


@outside.needs(outside.SDMX)
def test_every_specimen_is_read_as_sdmx1_reads_it_alone_split_and_all_together_in_any_order(tmp_path: Path) -> None:
    paths = specimens()
    digests, alone = golden("sdmx_specimens.yaml"), {path: read_structures([path]) for path in paths}
    assert len(paths) == len(digests) > 30
    for number, path in enumerate(paths):
        told = json.dumps(read_whole(alone[path]), sort_keys=True).encode()
        assert sha256(told).hexdigest()[:16] == digests[f"{path.parent.name}/{path.name}"], path
        (tmp_path / str(number)).mkdir()
        files = split(path, tmp_path / str(number))
        apart = read_structures(Random(number).sample(files, len(files)))
        assert read_whole(apart) == read_whole(alone[path])
        assert by_id(apart) == by_id(alone[path])
    described = [by_id(read_structures(Random(seed).sample(paths, len(paths)))) for seed in range(2)]
    assert described[0] == described[1]
    everything = read_whole(read_structures(paths))
    for lists, *others in map(read_whole, alone.values()):
        for at, codes in lists.items():  # several messages hold parts of one list
            assert {id for id, *_ in codes} <= {id for id, *_ in everything[0][at]}
        for known, expected in zip(everything[1:], others, strict=True):
            assert {at: len(known[at]) >= len(found) for at, found in expected.items()} == dict.fromkeys(expected, True)


def test_messages_that_name_one_concept_or_code_in_several_ways_give_the_same_in_any_order(tmp_path: Path) -> None:
    held = parts("v2_1")
    others = [
        SCHEME.format(**V2).replace("Area", "Reference area"),
        LISTS[0].format(**V2).replace("Europe", "EU"),
        FLOW.format(**V2).replace("Flow", "The flow"),
        held[1].replace("AREA", "PLACE", 1),
        held[5].replace("<Value>E<", "<Value>W<"),
    ]
    for number, part in enumerate([*held, *others]):
        (tmp_path / f"{number}.xml").write_text(message("v2_1", part))
    files = sorted(tmp_path.iterdir())
    first, *rest = [by_id(read_structures(Random(seed).sample(files, len(files)))) for seed in range(12)]
    assert all(found == first for found in rest)


def test_the_command_prints_what_was_found_and_what_is_missing_by_file(tmp_path: Path) -> None:
    for number, part in enumerate(parts("v2_1")):
        if number != 4:
            (tmp_path / f"{number}.xml").write_text(message("v2_1", part))
    result = CliRunner().invoke(app, ["import", "structures", *map(str, sorted(tmp_path.iterdir()))])
    assert result.exit_code == 1
    told = result.output.splitlines()
    assert told[0] == "A:F  Flow (version 1.0)"
    assert told[1:3] == [
        "  AREA  2 codes of A:CL_AREA(1.2), 1 with data",
        "  UNIT  cannot be used: no structure message holds the code list A:CL_UNIT(1.0) of dimension UNIT of A:F",
    ]
    assert "3.xml: code list A:CL_AREA(1.2)" in result.output
    assert "1.xml: no structure message holds the code list A:CL_UNIT(1.0) of dimension UNIT of A:F" in result.output
    (tmp_path / "4.xml").write_text(message("v2_1", LISTS[1]))
    result = CliRunner().invoke(app, ["import", "structures", *map(str, sorted(tmp_path.iterdir()))])
    assert result.exit_code == 0, result.output
    assert "1 code of A:CL_UNIT(1.0)" in result.output


OLD = (
    '<?xml version="1.0"?>\n<Structure xmlns="http://www.SDMX.org/resources/SDMXML/schemas/v{}_0/message"><CodeLists/>'
    "</Structure>"
)


def whole(*changes: tuple[str, str]) -> str:
    """A message in SDMX-ML 2.1 with changes, on several lines."""
    text = message("v2_1", *(f"\n{part}" for part in parts("v2_1")))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (OLD.format(2), "m.xml: SDMX-ML 2.0 is not supported; expected a message in SDMX-ML 2.1 or 3, or SDMX-JSON"),
        (OLD.format(1), "m.xml: SDMX-ML 1.0 is not supported; expected "),
        (whole(('<Code id="W">', "<Code>")), "m.xml:5: the code list A:CL_AREA(1.2) has a code without an id"),
        (whole(('<Code id="W">', '<Code id="">')), "m.xml:5: the code list A:CL_AREA(1.2) has a code without an id"),
        (
            whole(('<Dimension id="AREA">', "<Dimension>"), ('<Ref id="AREA" ', "<Ref ")),
            "m.xml:3: the data structure A:S(1.0) has a dimension without an id",
        ),
    ],
)
def test_a_message_that_would_lose_something_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "m.xml").write_text(text)
    with pytest.raises(InputError, match=re.escape(told)):
        read_structures([tmp_path / "m.xml"])


def _codes(codes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["codelists"][0].update(codes=codes)


def _dimensions(given: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["dataStructures"][0]["dataStructureComponents"]["dimensionList"].update(dimensions=given)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_codes({"FR": "France"}), "the code list A:CL(1.0): expected 'codes' as a list of objects, found an object"),
        (_codes(["FR"]), "the code list A:CL(1.0): expected 'codes' as a list of objects, found a text at 0"),
        (_codes([{"id": "FR"}, {"id": None}]), "the code list A:CL(1.0) has a code without an id"),
        (_codes([{"name": "France"}]), "the code list A:CL(1.0) has a code without an id"),
        (_codes([{"id": 1}]), "the code list A:CL(1.0): expected the id of a code as a text, found a number: 1"),
        (_dimensions(None), "the data structure A:S(1.0): expected 'dimensions' as a list of objects, found null"),
        (_dimensions({}), "the data structure A:S(1.0): expected 'dimensions' as a list of objects, found an object"),
        (_dimensions([{}]), "the data structure A:S(1.0) has a dimension without an id"),
        (
            _dimensions([{"id": "GEO", "localRepresentation": "x"}]),
            "the data structure A:S(1.0): expected 'localRepresentation' as an object, found a text",
        ),
        (
            _dimensions([{"id": "GEO", "conceptIdentity": {"id": "GEO"}}]),
            "is no SDMX structure message: a part of it is of another kind than the standard says",
        ),
        (
            lambda data: data["conceptSchemes"][0].update(concepts=[{"name": "Geography"}]),
            "the concept scheme A:C(1.0) has a concept without an id",
        ),
        (lambda data: data.update(codelists={}), "the message: expected 'codelists' as a list of objects, found an "),
        (lambda data: data["dataflows"][0].pop("id"), "the message has an artefact without an id"),
    ],
)
def test_json_of_another_kind_than_the_standard_says_is_told_in_words(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], told: str
) -> None:
    data = deepcopy(JSON)
    change(data)
    json_message(tmp_path / "m.json", **data)
    with pytest.raises(InputError, match=re.escape(f"m.json: {told}")):
        read_structures([tmp_path / "m.json"])


@pytest.mark.parametrize("form", ["utf-8", "utf-8-sig", "utf-16"])
def test_json_is_read_in_any_form_of_unicode(tmp_path: Path, form: str) -> None:
    (tmp_path / "m.json").write_text(json.dumps({"data": JSON}), encoding=form)
    (data_set,) = read_structures([tmp_path / "m.json"]).data_sets
    assert [term.pair for term in data_set.dimensions["GEO"].codes.terms] == [("FR", "France"), ("DE", "DE")]


def test_a_list_without_codes_is_told_as_that_unless_another_message_has_them(tmp_path: Path) -> None:
    flow, structure, scheme, areas, units, _ = parts("v2_1")
    stub = '<Codelist id="CL_AREA" agencyID="A" version="1.2"/>'
    (tmp_path / "stub.xml").write_text(message("v2_1", flow, structure, scheme, stub, units))
    found = read_structures([tmp_path / "stub.xml"])
    sentence = "the code list A:CL_AREA(1.2) of dimension AREA of A:F has no codes in any structure message"
    assert [missing.sentence for missing in found.missing] == [sentence]
    (tmp_path / "codes.xml").write_text(message("v2_1", areas))
    assert not read_structures([tmp_path / "stub.xml", tmp_path / "codes.xml"]).missing
    data = deepcopy(JSON)
    data["codelists"][0]["codes"] = []
    json_message(tmp_path / "m.json", **data)
    told = "of dimension GEO of A:F has no codes in any structure message"
    assert [told in missing.sentence for missing in read_structures([tmp_path / "m.json"]).missing] == [True]


def test_a_data_set_without_any_dimension_is_told_as_that(tmp_path: Path) -> None:
    data = deepcopy(JSON)
    _dimensions([])(data)
    json_message(tmp_path / "m.json", **data)
    with pytest.raises(InputError, match="structures: data set A:F has no dimension with codes"):
        read_data_sets([tmp_path / "m.json"], "structures")
    result = CliRunner().invoke(app, ["import", "structures", str(tmp_path / "m.json")])
    assert result.output.splitlines()[:2] == ["A:F  F (version 1.0)", "  no dimension has codes"]


@pytest.mark.parametrize("kind", ["xml", "json"])
def test_a_code_with_two_names_is_told_and_one_that_is_only_repeated_is_not(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"m.{kind}"

    def write(id: str, name: str) -> None:
        data = deepcopy(JSON)
        data["codelists"][0].update(id="CL_UNIT", codes=[{"id": "EUR", "name": "Euro"}, {"id": id, "name": name}])
        code = f'<Name>Euro</Name></Code><Code id="{id}"><Name>{name}</Name></Code>'
        path.write_text(json.dumps({"data": data}) if kind == "json" else whole(("<Name>Euro</Name></Code>", code)))

    write("EUR", "Euros")
    sentence = "the code list A:CL_UNIT(1.0) names codes twice; the last name is used: EUR ('Euro', 'Euros')"
    assert read_structures([path]).remarks == (f"{path}: {sentence}",)
    assert f"notes:\n  {path}: {sentence}" in CliRunner().invoke(app, ["import", "structures", str(path)]).output
    if kind == "xml":
        assert catalogue_notes(catalogue_of([path], "structures")) == [f"{path}: {sentence}"]
    write("EUR", "Euro")
    assert read_structures([path]).remarks == ()


def test_a_folder_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{tmp_path}: is a folder; expected the files in it, each by its name"):
        read_structures([tmp_path])


def test_what_is_no_message_in_an_archive_is_skipped_and_told(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "Structures of 2024.")
        archive.writestr("about.html", "<html><body>About</body></html>")
        archive.writestr("a/b.xml", whole())
        archive.writestr("__MACOSX/a/._b.xml", b"\0\x05\x16\x07")
    found = read_structures([path])
    check(found)
    skipped = ("readme.txt", "about.html", "__MACOSX/a/._b.xml")
    assert found.remarks == tuple(f"{path}/{name}: is no structure message, and was skipped" for name in skipped)


def test_an_archive_without_a_message_and_an_empty_member_are_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("readme.txt", "Nothing here.")
    with pytest.raises(InputError, match=re.escape("none.zip: holds no structure message (.xml, .json)")):
        read_structures([tmp_path / "none.zip"])
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("a.xml", whole())
        archive.writestr("b.xml", "")
    with pytest.raises(InputError, match=re.escape("empty.zip/b.xml: is no SDMX structure message: it is empty")):
        read_structures([tmp_path / "empty.zip"])


def test_a_member_without_the_usual_name_is_read_by_what_it_holds(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("structures", whole())
    found = read_structures([tmp_path / "all.zip"])
    check(found)
    assert found.remarks == ()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_too_large_is_told_at_once_and_not_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"s{suffix}"
    with path.open("wb") as file:
        file.truncate(2 << 30)  # sparse: it takes no room
    with pytest.raises(InputError, match="has 2,147,483,648 bytes; expected at most"):
        read_data_sets([path])
