"""Manifests: which parts the store consists of, and which files of the record they were made from; one file a suite.

A manifest is replaced as a whole. Its first line has a digest of the others, which follow it compressed: one for each
key, with the files of the record and the parts.
"""

import hashlib
import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.durable import fsync_path, make_folders, replace_durably, temporary_path
from eval_pipeline.store.keys import RecordKey, folder_value
from eval_pipeline.store.published.memo import KnownFile, key_line, key_of_line

_OF_MODEL_VERSIONS = "model_versions"
_ENDING = ".manifest"
_FORM = 1
"""Raise it when earlier versions cannot read what is written; those before the mark wrote none."""


class DamagedManifestError(StoreError):
    """A manifest is damaged, or of another schema."""


class NewerManifestError(StoreError):
    """A manifest has a form that only newer versions know; it is no damage that this one may mend."""


@dataclass(frozen=True, slots=True)
class CatalogPart:
    """A Parquet file of the store, with the rows of one table and key.

    Attributes:
        table: the published table.
        name: the first 32 hexadecimal digits of the SHA-256 of its bytes.
        rows: number of rows, at least 1.
    """

    table: str
    name: str
    rows: int

    @property
    def place(self) -> str:
        """Its table and name: `<table>/<name>`."""
        return f"{self.table}/{self.name}"

    def path(self, parts: Path) -> Path:
        """Returns its place below the folder of all parts."""
        return parts / f"{self.place}.parquet"


@dataclass(frozen=True, slots=True)
class Manifests:
    """All manifests of a store.

    Attributes:
        lines: encoded key → its files and its parts, both encoded; only what is needed is decoded.
    """

    lines: Mapping[bytes, tuple[bytes, bytes]]
    _made: dict[tuple[str, str], bytes] = field(default_factory=dict, compare=False, repr=False)
    """Texts by schema and file name, as compressing takes time."""

    @classmethod
    def load(cls, folder: Path, schema: str) -> "Manifests":
        """Reads the manifests of a folder.

        Args:
            folder: the manifests.
            schema: hash of the schema that the parts must have.

        Raises:
            DamagedManifestError: one is damaged, or is of another schema.
            NewerManifestError: one was written by a newer version in a form of its own.
        """
        lines: dict[bytes, tuple[bytes, bytes]] = {}
        made: dict[tuple[str, str], bytes] = {}
        for path in manifest_files(folder):
            made[schema, path.name] = path.read_bytes()
            lines |= _decoded(path, made[schema, path.name], schema)
        return cls(lines, made)

    def known(self, keys: Collection[RecordKey] | None = None) -> dict[str, KnownFile]:
        """Returns the files of the record that the parts were made from, by path, for the given keys or for all."""
        wanted = self.lines if keys is None else [line for key in keys if (line := key_line(key)) in self.lines]
        files: dict[str, KnownFile] = {}
        for line in wanted:
            key = key_of_line(line)
            for name, (size, changed, inode, content_hash) in json.loads(self.lines[line][0]).items():
                files[name] = KnownFile((size, changed, inode), content_hash, key)
        return files

    def parts_of(self, key: RecordKey) -> dict[str, CatalogPart]:
        """Returns the parts of a key by table."""
        found = json.loads(self.lines.get(key_line(key), (b"", b"{}"))[1])
        return {table: CatalogPart(table, name, rows) for table, (name, rows) in found.items()}

    def parts(self) -> dict[str, list[CatalogPart]]:
        """Returns all parts by table, in the order of their keys."""
        found: dict[str, list[CatalogPart]] = {}
        for key in sorted(map(key_of_line, self.lines), key=RecordKey.order):
            for table, part in self.parts_of(key).items():
                found.setdefault(table, []).append(part)
        return found

    def places(self) -> set[str]:
        """Returns all parts as `<table>/<name>`."""
        return {part.place for parts in self.parts().values() for part in parts}

    def replaced(
        self,
        files: Mapping[str, KnownFile],
        keys: Collection[RecordKey] | None,
        parts: Mapping[RecordKey, Mapping[str, CatalogPart | None]],
    ) -> "Manifests":
        """Returns manifests in which these files and parts replace those of the keys.

        Args:
            files: files of the record by path; the only ones of `keys`.
            keys: the keys that `files` is about; None: all.
            parts: by key and table the new parts, None where a table has no rows any more; others stay.
        """
        of_key: dict[RecordKey, dict[str, list[int | str]]] = {}
        for name, file in sorted(files.items()):
            of_key.setdefault(file.key, {})[name] = [*file.status, file.content_hash]
        gone = self.lines.keys() if keys is None else {key_line(key) for key in keys}
        lines = {line: told for line, told in self.lines.items() if line not in gone}
        for key, found in of_key.items():
            mine = self.parts_of(key) | dict(parts.get(key, {}))
            named = {table: [part.name, part.rows] for table, part in sorted(mine.items()) if part is not None}
            lines[key_line(key)] = (json.dumps(found).encode(), json.dumps(named).encode())
        differing = {line for line in lines.keys() | self.lines.keys() if lines.get(line) != self.lines.get(line)}
        others = {_file_name(key_of_line(line)) for line in differing}
        return Manifests(lines, {place: text for place, text in self._made.items() if place[1] not in others})

    def texts(self, schema: str) -> dict[str, bytes]:
        """Returns the contents of the manifests by file name; of those that have not changed, as they were read."""
        bodies: dict[str, list[bytes]] = {}
        for line in sorted(self.lines):
            bodies.setdefault(_file_name(key_of_line(line)), []).append(line)
        for name, body in bodies.items():
            if (schema, name) not in self._made:
                told = b"".join(b"\t".join([line, *self.lines[line]]) + b"\n" for line in body)
                self._made[schema, name] = _encoded(told, schema)
        return {name: self._made[schema, name] for name in bodies}


def save(folder: Path, texts: Mapping[str, bytes]) -> None:
    """Makes the manifests of a folder those given; each is replaced durably, and equal ones are left alone."""
    make_folders(folder)
    for left in folder.glob(".*.tmp"):  # of a killed publisher
        left.unlink()
    for name, text in texts.items():
        target = folder / name
        if target.exists() and target.read_bytes() == text:
            continue
        temporary = temporary_path(target)
        temporary.write_bytes(text)
        fsync_path(temporary)
        replace_durably(temporary, target)
    for path in manifest_files(folder):
        if path.name not in texts:
            path.unlink()
            fsync_path(folder)


def empty_manifest(schema: str) -> bytes:
    """Returns a manifest that names nothing."""
    return _encoded(b"", schema)


def manifest_files(folder: Path) -> Iterator[Path]:
    """Yields the manifests of a folder."""
    yield from sorted(path for path in folder.glob(f"*{_ENDING}") if is_manifest(path))


def is_manifest(path: Path) -> bool:
    """Whether a file in the folder of the manifests is one by its name; others are somebody else's."""
    return path.name.endswith(_ENDING) and not path.name.startswith(".")


def digests(texts: Mapping[str, bytes]) -> dict[bytes, bytes]:
    """Returns a digest of each manifest by its name."""
    return {name.encode(): hashlib.sha256(text).hexdigest()[:32].encode() for name, text in texts.items()}


def _file_name(key: RecordKey) -> str:
    return f"{_OF_MODEL_VERSIONS if key.suite is None else f'suite={folder_value(key.suite)}'}{_ENDING}"


def _encoded(body: bytes, schema: str) -> bytes:
    head = {"form": _FORM, "schema": schema, "digest": _digest(schema, body), "packed": True}
    return json.dumps(head).encode() + b"\n" + zlib.compress(body, level=1)


def _decoded(path: Path, text: bytes, schema: str) -> dict[bytes, tuple[bytes, bytes]]:
    head, _, body = text.partition(b"\n")
    try:
        found: dict[str, Any] = json.loads(head)
        if int(found.get("form", _FORM)) > _FORM:
            raise NewerManifestError(
                f"the manifest {path} was written by a newer eval-pipeline, in a form that this one does not know; use "
                "that version on all hosts, or run `eval-pipeline publish --full` to make the store anew with this one"
            )
        of_schema, digest = str(found["schema"]), found["digest"]
        if found.get("packed"):  # those of earlier versions are not
            body = zlib.decompress(body)
        parted = [line.split(b"\t") for line in body.split(b"\n")[:-1]]
        lines = {key: (files, parts) for key, files, parts in parted}
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise DamagedManifestError(f"the manifest {path} is damaged") from error
    if digest != _digest(of_schema, body):
        raise DamagedManifestError(f"the manifest {path} is damaged")
    if of_schema != schema:
        raise DamagedManifestError("the tables have another schema now")
    return lines


def _digest(schema: str, body: bytes) -> str:
    return hashlib.sha256(schema.encode() + b"\n" + body).hexdigest()
