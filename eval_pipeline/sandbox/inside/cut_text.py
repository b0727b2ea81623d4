"""Cuts texts that are too long to be told. Standard library only."""

from typing import Any


def cut_text(text: str, most: int) -> dict[str, Any]:
    """Returns a text of at most so many bytes, with a note if it is cut, its whole size, and whether it is cut."""
    whole = text.encode(errors="surrogatepass")
    if len(whole) <= most:
        return {"text": text, "size": len(whole), "cut": False}
    shown = whole[:most].decode(errors="ignore")
    return {"text": f"{shown}\n… ({len(whole):,} bytes; the first {most:,} are shown)", "size": len(whole), "cut": True}
