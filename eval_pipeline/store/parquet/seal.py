"""Seals: the footer of a record file holds a digest of itself.

The footer also holds the content hash of everything before it, so that the two cover every byte of the file: Parquet's
own checksums cover pages only, and DuckDB does not look at them. The seal is taken with zeros in its own place.
"""

import hashlib
import re

SEAL = "footer_digest"
"""Name of the seal among the footer's metadata."""
_MARK = "footer-sha256:"
BLANK = _MARK + "0" * 64
"""What stands in the place of the seal until the footer is whole."""
_PATTERN = re.compile(_MARK.encode() + rb"([0-9a-f]{64})")


def sealed(footer: bytes) -> bytes:
    """The footer with its seal.

    Args:
        footer: with `BLANK` in it, once; with the length and the magic bytes behind it.
    """
    place = footer.index(BLANK.encode()) + len(_MARK)
    digest = hashlib.sha256(footer).hexdigest().encode()
    return footer[:place] + digest + footer[place + len(digest) :]


def is_sealed(footer: bytes) -> bool | None:
    """Whether a footer is as it was written; None where it was written without a seal, as 0.1.0 did."""
    found = list(_PATTERN.finditer(footer))
    if not found and SEAL.encode() not in footer:
        return None
    if len(found) != 1:
        return False
    start, end = found[0].span(1)
    blank = footer[:start] + b"0" * (end - start) + footer[end:]
    return hashlib.sha256(blank).hexdigest().encode() == found[0][1]
