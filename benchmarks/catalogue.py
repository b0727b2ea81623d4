"""CPU, time and memory of a large catalogue of the track `sdmx`: `python -m benchmarks.catalogue [--codes 100000]`.

A data set with one large code list of distinct names and descriptions. First, in a process of its own, it is read from
an SDMX-ML 2.1 message into the record, as `cases` does once; then, in another, what every later process does: it is
loaded from the record and indexed, and requests are retrieved for. Reported are CPU seconds (user + system), CPU
milliseconds a retrieval and the largest resident set.
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUBJECTS = "output employment wages exports imports credit deposits savings prices turnover orders rents taxes".split()
SECTORS = "agriculture mining manufacturing energy construction trade transport hotels finance health education".split()
PRICES = ("current prices", "constant prices", "per capita", "percent change", "percent of total", "index")
REGIONS = [
    f"{side} {name}" for side in ("north", "south", "east", "west") for name in ("vale", "coast", "hills", "isles")
]
REQUESTS = 200


def write_message(path: Path, codes: int) -> None:
    """A structure message in SDMX-ML 2.1."""
    rng = random.Random(0)
    schema = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<m:Structure xmlns:m="{schema}/message" xmlns:s="{schema}/structure" xmlns:c="{schema}/common"><m:Header>'
        '<m:ID>B</m:ID><m:Test>true</m:Test><m:Prepared>2026-01-01T00:00:00Z</m:Prepared><m:Sender id="B"/></m:Header>'
        '<m:Structures><s:Dataflows><s:Dataflow id="BIG" agencyID="B" version="1.0"><c:Name xml:lang="en">Big</c:Name>'
        '<s:Structure><Ref agencyID="B" id="DSD" version="1.0" package="datastructure" class="DataStructure"/>'
        "</s:Structure></s:Dataflow></s:Dataflows>"
        '<s:Codelists><s:Codelist id="CL" agencyID="B" version="1.0"><c:Name xml:lang="en">Big</c:Name>',
    ]
    for number in range(codes):
        subject, sector, price, region = map(rng.choice, (SUBJECTS, SECTORS, PRICES, REGIONS))
        name = f"{subject} in {sector}, class {number % 500}, {price}"
        lines.append(
            f'<s:Code id="C{number:06d}"><c:Name xml:lang="en">{name}</c:Name>'
            f'<c:Description xml:lang="en">What {sector} in {region} reports of its {subject}.</c:Description></s:Code>'
        )
    lines.append(
        '</s:Codelist></s:Codelists><s:Concepts><s:ConceptScheme id="CS" agencyID="B" version="1.0">'
        '<c:Name xml:lang="en">Big</c:Name><s:Concept id="INDICATOR"><c:Name xml:lang="en">I</c:Name></s:Concept>'
        "</s:ConceptScheme></s:Concepts><s:DataStructures>"
        '<s:DataStructure id="DSD" agencyID="B" version="1.0"><c:Name xml:lang="en">Big</c:Name>'
        '<s:DataStructureComponents><s:DimensionList id="DimensionDescriptor"><s:Dimension id="INDICATOR" position="1">'
        '<s:ConceptIdentity><Ref maintainableParentID="CS" maintainableParentVersion="1.0" agencyID="B" id="INDICATOR" '
        'package="conceptscheme" class="Concept"/></s:ConceptIdentity><s:LocalRepresentation><s:Enumeration>'
        '<Ref agencyID="B" id="CL" version="1.0" package="codelist" class="Codelist"/></s:Enumeration>'
        "</s:LocalRepresentation></s:Dimension></s:DimensionList></s:DataStructureComponents></s:DataStructure>"
        "</s:DataStructures></m:Structures></m:Structure>"
    )
    path.write_text("\n".join(lines))


def read(folder: Path) -> None:
    """From SDMX-ML into the record."""
    from eval_pipeline.store.record import Record, RecordKey
    from eval_pipeline_plugins.tracks.sdmx.catalogue.source import catalogue_rows, read_catalogue
    from eval_pipeline_plugins.tracks.sdmx.tables import SUITE_TABLES

    started = time.process_time()
    retriever = read_catalogue(folder, {})
    record, rows = Record(folder / "record"), catalogue_rows(retriever.catalogue)
    for table in SUITE_TABLES:
        with record.writer(table, RecordKey.of_suite("big"), {}) as writer:
            writer.write(rows[table.name])
    codes = sum(len(found.terms) for found in retriever.catalogue.code_lists().values())
    taken = time.process_time() - started
    print(f"read once from SDMX-ML: {codes:,} codes, {taken:.2f} CPU s, peak {_peak():.0f} MiB")


def load(folder: Path) -> None:
    """From the record, indexed; then requests."""
    from eval_pipeline.store.record import Record, RecordKey
    from eval_pipeline_plugins.tracks.sdmx.catalogue.source import load_catalogue
    from eval_pipeline_plugins.tracks.sdmx.tables import SUITE_TABLES

    started = time.process_time()
    record = Record(folder / "record")
    tables = {table.name: record.read(table, RecordKey.of_suite("big")) for table in SUITE_TABLES}
    retriever = load_catalogue(tables, {})
    loaded = time.process_time() - started
    retriever.candidates("employment")
    indexed = time.process_time() - started
    rng = random.Random(1)
    taken = []
    for number in range(REQUESTS):
        subject, sector, price = map(rng.choice, (SUBJECTS, SECTORS, PRICES))
        request = f"{subject} in {sector} number {number}, {price}"
        before = time.process_time()
        retriever.candidates(request)
        taken.append((time.process_time() - before) * 1000)
    print(f"loaded: {loaded:.2f} CPU s; with its index: {indexed:.2f} CPU s")
    print(f"a retrieval: median {statistics.median(taken):.1f} CPU ms, slowest {max(taken):.1f} CPU ms")
    print(f"largest resident set: {_peak():.0f} MiB")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--codes", type=int, default=100_000)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=("read", "load"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        {"read": read, "load": load}[arguments.part](Path(arguments.folder))
        return
    with tempfile.TemporaryDirectory() as place:
        structures = Path(place, "structures")
        structures.mkdir()
        write_message(structures / "big.xml", arguments.codes)
        for part in ("read", "load"):
            command = [sys.executable, "-m", "benchmarks.catalogue", "--folder", place, "--part", part]
            subprocess.run(command, check=True, env=os.environ)


if __name__ == "__main__":
    main()
