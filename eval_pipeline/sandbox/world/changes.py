"""What an attempt has changed in its world, as JSON that a trajectory keeps."""

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from hashlib import sha256

from eval_pipeline.core.model import Json
from eval_pipeline.core.values import value
from eval_pipeline.sandbox.limits import MIB

_LINK, _FOLDER = "link", "folder"
_MOST_BYTES = 256 * MIB


@value
class ChangedFile:
    """A path of a world that is not as it was.

    Attributes:
        kind: `file`, `removed`, `link`, `folder` (a new one without anything in it), or `special` (a pipe, a socket).
        body: a file's bytes; None if there was no room to keep them.
        target: where a link leads.
    """

    kind: str
    body: bytes | None = None
    target: str = ""

    def as_json(self) -> Json:
        """Returns it as JSON; `changed` reads it."""
        match self.kind:
            case "file" if self.body is None:
                return {"left_out": True}
            case "file":
                assert self.body is not None
                packed = base64.b64encode(zlib.compress(self.body)).decode("ascii")
                return {"sha256": sha256(self.body).hexdigest(), "size": len(self.body), "body": packed}
            case "removed":
                return None
            case "link":
                return {_LINK: self.target}
        return {self.kind: True}


def changed(told: Json) -> ChangedFile:
    """Reads what `ChangedFile.as_json` wrote.

    Raises:
        ValueError: it is something else, or its bytes are not those that were kept.
    """
    match told:
        case None:
            return ChangedFile("removed")
        case {"sha256": str() as digest, "size": int() as size, "body": str() as packed}:
            if size > _MOST_BYTES:
                raise ValueError(f"no kept file has more than {_MOST_BYTES:,} bytes")
            try:
                unpack = zlib.decompressobj()
                body = unpack.decompress(base64.b64decode(packed, validate=True), size + 1)
            except (zlib.error, binascii.Error) as error:
                raise ValueError(f"no kept file: {error}") from error
            if len(body) != size or sha256(body).hexdigest() != digest:
                raise ValueError("a kept file is damaged: its bytes do not have its checksum")
            return ChangedFile("file", body)
        case {"left_out": True}:
            return ChangedFile("file")
        case {"link": str() as target}:
            return ChangedFile("link", target=target)
        case {"folder": True} | {"special": True}:
            return ChangedFile(next(iter(told)))
    raise ValueError("no change of a file")


def packed_changes(files: Mapping[str, ChangedFile]) -> tuple[list[Json], bytes]:
    """Returns changes in the form in which a keeper reads them; see `inside.keeper`.

    What was not kept is missing in the world: nothing that looks at it may find what was there before.
    """
    listed: list[Json] = []
    bodies: list[bytes] = []
    for path, one in files.items():
        match one.kind:
            case "file" if one.body is not None:
                bodies.append(one.body)
                listed.append([path, len(one.body)])
            case "link":
                listed.append([path, {_LINK: one.target}])
            case "folder":
                listed.append([path, {_FOLDER: True}])
            case _:
                listed.append([path, None])
    return listed, b"".join(bodies)


def read_changes(listed: Sequence[Json], left_out: Sequence[Json], body: bytes) -> dict[str, ChangedFile]:
    """Reads what a keeper tells of an end state.

    Raises:
        ValueError, TypeError: it is something else.
    """
    found: dict[str, ChangedFile] = {}
    start = 0
    for path, what in listed:
        if isinstance(what, int):
            found[_readable(path)] = ChangedFile("file", body[start : start + what])
            start += what
        else:
            found[_readable(path)] = changed(what)
    return found | {_readable(path): ChangedFile("file") for path in left_out}


def _readable(path: str) -> str:
    """Returns a path with bytes that are no UTF-8 as escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
