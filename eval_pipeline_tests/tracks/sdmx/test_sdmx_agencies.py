"""Messages of real agencies, and messages by the standards: alone, packed, and split over files in any order."""

import gzip
import json
import subprocess
import sys
import zipfile
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from eval_pipeline.cli.app import app
from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.sdmx.catalogue.artefacts import shown
from eval_pipeline.tracks.sdmx.catalogue.catalogue import DataSet
from eval_pipeline.tracks.sdmx.catalogue.structures import Found, read_structures
from eval_pipeline_tests import outside

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


def check(found: Found) -> None:
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


def test_json_of_the_first_version_is_read(tmp_path: Path) -> None:
    urns = {name: V3[name] for name in ("structure", "concept", "codes")}
    data = {
        "dataflows": [{"id": "F", "agencyID": "A", "version": "1.0", "name": "Flow", "structure": urns["structure"]}],
        "dataStructures": [
            {
                "id": "S",
                "agencyID": "A",
                "version": "1.0",
                "dataStructureComponents": {
                    "dimensionList": {
                        "dimensions": [
                            {
                                "id": "AREA",
                                "conceptIdentity": urns["concept"],
                                "localRepresentation": {"enumeration": urns["codes"]},
                            }
                        ]
                    }
                },
            }
        ],
        "codelists": [
            {"id": "CL_AREA", "agencyID": "A", "version": "1.1", "codes": [{"id": "W", "names": {"en": "World"}}]}
        ],
        "contentConstraints": [
            {
                "id": "K",
                "agencyID": "A",
                "type": "Actual",
                "constraintAttachment": {"dataflows": ["urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=A:F(1.0)"]},
                "cubeRegions": [{"isIncluded": True, "keyValues": [{"id": "AREA", "values": ["W"]}]}],
            }
        ],
    }
    (tmp_path / "m.json").write_text(json.dumps({"data": data}))
    (data_set,) = read_structures([tmp_path / "m.json"]).data_sets
    assert data_set.available == {"AREA": frozenset({"W"})}
    assert [term.pair for term in data_set.dimensions["AREA"].codes.terms] == [("W", "World")]


def test_a_damaged_member_of_an_archive_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("good.xml", message("v2_1"))
        archive.writestr("bad.xml", "<a>")
    with pytest.raises(InputError, match=r"all.zip/bad.xml.*is no SDMX structure message"):
        read_structures([tmp_path / "all.zip"])


SPECIMENS = [outside.SDMX / "specimens", outside.SDMX / "imf_codelists"]


def specimens() -> list[Path]:
    return [path for folder in SPECIMENS if folder.is_dir() for path in sorted(folder.glob("*.xml"))]


def ours(found: Found) -> list[Any]:
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


def by_id(found: Found) -> list[DataSet]:
    return sorted(found.data_sets, key=lambda data_set: data_set.id)


@outside.needs(outside.SDMX)
def test_every_specimen_is_read_as_sdmx1_reads_it_alone_split_and_all_together_in_any_order(tmp_path: Path) -> None:
    paths = specimens()
    assert len(paths) > 30
    script = Path(__file__).with_name("read_by_sdmx1.py")
    made = subprocess.run([sys.executable, "-P", str(script), *map(str, paths)], capture_output=True, check=True)
    theirs = json.loads(made.stdout)
    alone = {str(path): ours(read_structures([path])) for path in paths}
    assert alone == theirs
    for number, path in enumerate(paths):
        (tmp_path / str(number)).mkdir()
        files = split(path, tmp_path / str(number))
        apart = read_structures(Random(number).sample(files, len(files)))
        assert ours(apart) == theirs[str(path)]
        assert by_id(apart) == by_id(read_structures([path]))
    together = [Random(seed).sample(paths, len(paths)) for seed in range(2)]
    described = [by_id(read_structures(order)) for order in together]
    assert described[0] == described[1]
    everything = ours(read_structures(paths))
    for parts_of_one in theirs.values():
        for at, codes in parts_of_one[0].items():  # several messages hold parts of one list
            assert {id for id, *_ in codes} <= {id for id, *_ in everything[0][at]}
        for known, expected in zip(everything[1:], parts_of_one[1:], strict=True):
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
