"""How manifests are written and read."""

import json
import zlib
from pathlib import Path

import pytest

from eval_pipeline.store.catalog.manifests import CatalogPart, DamagedManifestError, Manifests, NewerManifestError, save
from eval_pipeline.store.published.memo import KnownFile
from eval_pipeline_tests.store.samples import key_of

SCHEMA = "schema"
KEY = key_of()
PART = CatalogPart("metrics", "0" * 32, 7)


def one() -> Manifests:
    files = {f"record/{number}/part.parquet": KnownFile((1, 2, number), f"{number:064}", KEY) for number in range(40)}
    return Manifests({}).replaced(files, None, {KEY: {"metrics": PART}})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    save(tmp_path, one().texts(SCHEMA))
    read = Manifests.load(tmp_path, SCHEMA)
    assert read == one()
    assert read.parts_of(KEY) == {"metrics": PART}
    assert len(read.known()) == 40


def test_a_manifest_is_written_compressed() -> None:
    """It is written anew with each publishing, and its paths say the same again and again."""
    body = b"".join(b"\t".join([line, *told]) for line, told in one().lines.items())
    (text,) = one().texts(SCHEMA).values()
    assert len(text) < len(body) / 3


def test_manifests_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """They are not compressed, and say nothing of their form."""
    ((name, text),) = one().texts(SCHEMA).items()
    head, _, body = text.partition(b"\n")
    told = {key: value for key, value in json.loads(head).items() if key not in ("form", "packed")}
    (tmp_path / name).write_bytes(json.dumps(told).encode() + b"\n" + zlib.decompress(body))
    assert Manifests.load(tmp_path, SCHEMA) == one()


def newer(text: bytes) -> bytes:
    """A manifest of a form that is not known, of which only the first line can be read."""
    head, _, _ = text.partition(b"\n")
    return json.dumps(json.loads(head) | {"form": 2, "packed": "otherwise"}).encode() + b"\n\xff\xfe"


def test_a_form_of_newer_versions_is_told_and_is_no_damage(tmp_path: Path) -> None:
    ((name, text),) = one().texts(SCHEMA).items()
    assert json.loads(text.partition(b"\n")[0])["form"] == 1
    (tmp_path / name).write_bytes(newer(text))
    with pytest.raises(NewerManifestError, match=r"suite=finqa.manifest was written by a newer eval-pipeline"):
        Manifests.load(tmp_path, SCHEMA)


def test_each_damaged_byte_is_noticed(tmp_path: Path) -> None:
    ((name, text),) = one().texts(SCHEMA).items()
    for place in range(text.index(b"\n"), len(text)):
        (tmp_path / name).write_bytes(text[:place] + bytes([text[place] ^ 4]) + text[place + 1 :])
        with pytest.raises(DamagedManifestError, match="is damaged"):
            Manifests.load(tmp_path, SCHEMA)
    (tmp_path / name).write_bytes(text[:-9])
    with pytest.raises(DamagedManifestError, match="is damaged"):
        Manifests.load(tmp_path, SCHEMA)
