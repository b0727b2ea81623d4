"""Structure messages that are wrong in part: each is told as what it is, and nothing is dropped in silence."""

import json
import re
import zipfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eval_pipeline.cli.app import app
from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.sdmx.catalogue.source import catalogue_notes, catalogue_of
from eval_pipeline.tracks.sdmx.catalogue.structures import read_data_sets, read_structures
from eval_pipeline_tests.tracks.sdmx.test_sdmx_agencies import check, message, parts

OLD = (
    '<?xml version="1.0"?>\n<Structure xmlns="http://www.SDMX.org/resources/SDMXML/schemas/v{}_0/message"><CodeLists/>'
    "</Structure>"
)
URN = "urn:sdmx:org.sdmx.infomodel."
JSON: dict[str, Any] = {
    "dataflows": [{"id": "F", "agencyID": "A", "structure": f"{URN}datastructure.DataStructure=A:S(1.0)"}],
    "codelists": [{"id": "CL", "agencyID": "A", "codes": [{"id": "FR", "name": "France"}, {"id": "DE"}]}],
    "conceptSchemes": [{"id": "C", "agencyID": "A", "concepts": [{"id": "GEO", "name": "Geography"}]}],
    "dataStructures": [
        {
            "id": "S",
            "agencyID": "A",
            "dataStructureComponents": {
                "dimensionList": {
                    "dimensions": [
                        {
                            "conceptIdentity": f"{URN}conceptscheme.Concept=A:C(1.0).GEO",
                            "localRepresentation": {"enumeration": f"{URN}codelist.Codelist=A:CL(1.0)"},
                        }
                    ]
                }
            },
        }
    ],
}


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
    (tmp_path / "m.json").write_text(json.dumps({"data": data}))
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
    (tmp_path / "m.json").write_text(json.dumps({"data": data}))
    told = "of dimension GEO of A:F has no codes in any structure message"
    assert [told in missing.sentence for missing in read_structures([tmp_path / "m.json"]).missing] == [True]


def test_a_data_set_without_any_dimension_is_told_as_that(tmp_path: Path) -> None:
    data = deepcopy(JSON)
    _dimensions([])(data)
    (tmp_path / "m.json").write_text(json.dumps({"data": data}))
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
