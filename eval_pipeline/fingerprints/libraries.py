"""The libraries whose version can change a result."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

DECISIVE: Mapping[str, str] = {
    # arithmetic, tables and statistics
    "numpy": "numpy",
    "pandas": "pandas",
    "scipy": "scipy",
    "sympy": "sympy",
    # SQL: parsing, rewriting, running
    "duckdb": "duckdb",
    "sqlglot": "sqlglot",
    # what says how good code is; run as a program, found by import
    "ruff": "ruff",
    # what cases and answers are read and looked up with
    "bm25s": "bm25s",
    "jsonpath": "python-jsonpath",
    "pycountry": "pycountry",
    "pysdmx": "pysdmx",
    # what is judged
    "autoevals": "autoevals",
    # what reports look like; nothing else imports them
    "jinja2": "jinja2",
    "matplotlib": "matplotlib",
    "openpyxl": "openpyxl",
}
"""Distribution by the name under which it is imported.

Not here is what only carries things about (dagster, pyarrow, httpx2, the clients of providers, whose answers are kept),
what checks what people wrote (pydantic, yaml), and prices (genai-prices is a setting of the stages that look them up):
a new version of these would have all figures computed anew, to the same end.
"""

NOT_INSTALLED = "not installed"
_VERSION = re.compile(r"^Version: *(\S+)", re.MULTILINE)


def versions(imported: Iterable[str]) -> dict[str, str]:
    """Versions by distribution of those decisive libraries that are among the names imported."""
    return {name: _version(name) for name in sorted({DECISIVE[top] for top in imported if top in DECISIVE})}


@lru_cache(maxsize=256)
def _version(distribution: str) -> str:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import distribution as find

    try:
        found = find(distribution)
    except PackageNotFoundError:
        return NOT_INSTALLED
    # `found.version` parses all of the metadata, the whole description too: ten times as long
    stated = _VERSION.search(found.read_text("METADATA") or "")
    return stated[1] if stated else found.version
