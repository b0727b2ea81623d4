"""Builds the models that are named, or all, in the order of their references."""

import re
import sys
from pathlib import Path

import duckdb

FILES = {path.stem: path for path in sorted(Path("models").rglob("*.sql"))}
REF = re.compile(r"\{\{\s*ref\('(\w+)'\)\s*\}\}")
SOURCE = re.compile(r"\{\{\s*source\('(\w+)',\s*'(\w+)'\)\s*\}\}")


def build(database, name, done):
    """Builds a model, after those that it refers to."""
    if name in done:
        return
    text = FILES[name].read_text()
    for other in REF.findall(text):
        build(database, other, done)
    kind = "VIEW" if FILES[name].parent.name == "staging" else "TABLE"
    sql = SOURCE.sub(r"\1.\2", REF.sub(r"main.\1", text)).strip().rstrip(";")
    database.execute(f"CREATE OR REPLACE {kind} main.{name} AS {sql}")
    print(f"built the {kind.lower()} {name}")
    done.add(name)


def main(names):
    """Builds the models of these names, or all."""
    unknown = [name for name in names if name not in FILES]
    if unknown:
        sys.exit(f"there is no model {unknown[0]}; there are: {', '.join(FILES)}")
    database, done = duckdb.connect("warehouse.duckdb"), set()
    for name in names or FILES:
        build(database, name, done)
    database.close()


if __name__ == "__main__":
    main(sys.argv[1:])
