"""Writes verdicts as a JUnit file, which CI systems show as tests.

The form is that of Ant's JUnit report: https://github.com/windyroad/JUnit-Schema.
"""

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from eval_pipeline.core.errors import UsageError
from eval_pipeline.operations.ci.gates import GateVerdict

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def check_place(path: Path) -> None:
    """Raises UsageError if no file can be written at this path; called before any model is asked."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"--junit {path}: expected a file in a folder that exists and can be written to")


def write_junit(path: Path, verdicts: Sequence[GateVerdict]) -> None:
    """Writes a test suite for each suite and model version, with a test case for each verdict.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        path.write_bytes(junit(verdicts, datetime.now(UTC)))
    except OSError as error:
        raise UsageError(f"--junit {path}: cannot be written: {error.strerror}") from error


def junit(verdicts: Sequence[GateVerdict], now: datetime) -> bytes:
    """Returns the verdicts as XML."""
    root = Element("testsuites")

    def place(found: GateVerdict) -> tuple[str, str]:
        return found.suite, found.subject

    for number, ((suite, subject), group) in enumerate(groupby(sorted(verdicts, key=place), key=place)):
        _add_suite(root, number, (suite, subject), list(group), now)
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add_suite(
    root: Element, number: int, place: tuple[str, str], verdicts: Sequence[GateVerdict], now: datetime
) -> None:
    suite, subject = (_text(part) for part in place)
    counts = {
        "tests": len(verdicts),
        "failures": sum(found.failure is not None and not found.broke for found in verdicts),
        "errors": sum(found.failure is not None and found.broke for found in verdicts),
    }
    told = {
        "name": f"{suite}/{subject}",
        "package": suite,
        "id": str(number),
        "timestamp": now.strftime("%Y-%m-%dT%H:%M:%S"),
        "hostname": "localhost",
        "time": "0",
        **{name: str(count) for name, count in counts.items()},
    }
    element = SubElement(root, "testsuite", told)
    SubElement(element, "properties")
    for found in verdicts:
        case = {"name": _text(found.name), "classname": f"{suite}.{subject}", "time": "0"}
        added = SubElement(element, "testcase", case)
        if found.failure is not None:
            kind = "error" if found.broke else "failure"
            message = _text(found.failure)
            SubElement(added, kind, {"message": message, "type": kind}).text = message
    SubElement(element, "system-out")
    SubElement(element, "system-err")


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
