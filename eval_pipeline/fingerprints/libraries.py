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
    # measures code quality; run as a program, detected by its import
    "ruff": "ruff",
    # reading and looking up cases and answers
    "bm25s": "bm25s",
    "jsonschema": "jsonschema",
    "jsonpath": "python-jsonpath",
    "pycountry": "pycountry",
    "re2": "google-re2",
    "rouge_score": "rouge-score",
    # judging
    "autoevals": "autoevals",
    # appearance of reports; nothing else imports them
    "jinja2": "jinja2",
    "resvg_py": "resvg-py",
    "openpyxl": "openpyxl",
}
"""Import name → distribution.

Libraries that only transport data are not listed (dagster, pyarrow, httpx2, the clients of providers, whose answers are
stored), nor those that validate user input (pydantic, yaml), nor prices (genai-prices is a setting of the stages that
use it). A new version of these would recompute all figures with the same result.
"""

NOT_INSTALLED = "not installed"
_VERSION = re.compile(r"^Version: *(\S+)", re.MULTILINE)


def versions(imported: Iterable[str]) -> dict[str, str]:
    """Returns distribution → version for the listed libraries among the imported names."""
    return {name: _version(name) for name in sorted({DECISIVE[top] for top in imported if top in DECISIVE})}


@lru_cache(maxsize=256)
def _version(distribution: str) -> str:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import distribution as find

    try:
        found = find(distribution)
    except PackageNotFoundError:
        return NOT_INSTALLED
    # `found.version` would parse all metadata including the long description, which takes ten times as long
    stated = _VERSION.search(found.read_text("METADATA") or "")
    return stated[1] if stated else found.version
