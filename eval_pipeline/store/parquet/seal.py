"""Seals: the footer of a record file contains a digest of itself.

The footer also contains the hash of everything before it, so the two cover every byte of the file. Parquet's own
checksums cover pages only, and DuckDB ignores them. The seal is computed with zeros in its own place.
"""

import hashlib
import re

SEAL = "footer_digest"
"""Key of the seal in the footer's metadata."""
_MARK = "footer-sha256:"
BLANK = _MARK + "0" * 64
"""Placeholder for the seal until the footer is complete."""
_PATTERN = re.compile(_MARK.encode() + rb"([0-9a-f]{64})")


def sealed(footer: bytes) -> bytes:
    """Returns the footer with its seal filled in.

    Args:
        footer: contains `BLANK` exactly once; includes the length and the magic bytes at the end.
    """
    place = footer.index(BLANK.encode()) + len(_MARK)
    digest = hashlib.sha256(footer).hexdigest().encode()
    return footer[:place] + digest + footer[place + len(digest) :]


def is_sealed(footer: bytes) -> bool | None:
    """Whether a footer is unchanged since it was written; None if it has no seal, as in files written by 0.1.0."""
    found = list(_PATTERN.finditer(footer))
    if not found and SEAL.encode() not in footer:
        return None
    if len(found) != 1:
        return False
    start, end = found[0].span(1)
    blank = footer[:start] + b"0" * (end - start) + footer[end:]
    return hashlib.sha256(blank).hexdigest().encode() == found[0][1]
