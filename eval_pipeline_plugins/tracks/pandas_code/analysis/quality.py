"""Finds code of low quality: findings of ruff, and row-wise work, for which ruff has no rules."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval_pipeline.core.values import value
from eval_pipeline_plugins.tracks.pandas_code.analysis.row_wise import row_wise_work
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse

RULES = ("F", "E", "B", "PD", "C901")
"""Pyflakes, pycodestyle errors, bugbear, pandas-vet and cyclomatic complexity."""
HIGHEST_COMPLEXITY = 10
LINE_LENGTH = 120
GIVEN = frozenset({"pd", "np"})
"""Names that are defined for every snippet, in addition to its tables (`sandbox/inside/snippet.py`)."""

_IMPORT = "import pandas as pd\n"
_UNDEFINED = re.compile(r"Undefined name `(\w+)`")


@value
class QualityFinding:
    """A problem of code quality.

    Attributes:
        rule: ruff's code, or the name of a row-wise anti-pattern (`row_wise.ANTI_PATTERNS`).
        line: line in the code, from 1.
        message: one sentence.
    """

    rule: str
    line: int
    message: str


def quality_findings(
    codes: Sequence[str], tables: Sequence[Collection[str]] | None = None
) -> list[list[QualityFinding]]:
    """Returns the quality problems of snippets in line order; one call of ruff checks all of them.

    Comments that would silence it, such as `noqa`, are ignored. Code that does not parse has no findings.

    Args:
        codes: the snippets.
        tables: names of the tables that are defined for each snippet; `df` by default.

    Raises:
        RuntimeError: ruff does not run.
    """
    trees = [parse(code) for code in codes]
    given = tables if tables is not None else [("df",)] * len(codes)
    linted = _linted({place: (codes[place], tree) for place, tree in enumerate(trees) if tree is not None})
    found = []
    for place, tree in enumerate(trees):
        findings = [finding for finding in linted.get(place, ()) if not _is_given(finding, given[place])]
        if tree is not None:
            findings += [QualityFinding(*item) for item in row_wise_work(tree)]
        found.append(sorted(findings, key=lambda finding: (finding.line, finding.rule)))
    return found


def _is_given(finding: QualityFinding, tables: Collection[str]) -> bool:
    """Returns whether the finding is about a name that the sandbox defines."""
    name = _UNDEFINED.fullmatch(finding.message) if finding.rule == "F821" else None
    return name is not None and (name[1] in GIVEN or name[1] in tables or (name[1] == "df" and len(tables) == 1))


def _linted(snippets: dict[int, tuple[str, ast.Module]]) -> dict[int, list[QualityFinding]]:
    """Returns the findings of ruff by snippet."""
    if not snippets:
        return {}
    found: dict[int, list[QualityFinding]] = {}
    with TemporaryDirectory(prefix="snippets-") as folder:
        for place, (code, tree) in snippets.items():
            # The rules of pandas-vet only check files that import pandas, which snippets need not do.
            prefix = "" if _imports_pandas(tree) else _IMPORT
            Path(folder, f"{place}_{len(prefix.splitlines())}_code.py").write_text(prefix + code, "utf-8", newline="")
            Path(folder, f"{place}_0_module.py").write_text(_module_as_function(tree), "utf-8")
        for told in _ruff(folder):
            number, shift, part = Path(told["filename"]).stem.split("_")
            rule, line, message = told["code"] or "E999", told["location"]["row"] - int(shift), told["message"]
            if part == "module":
                if rule != "C901":
                    continue
                line = snippets[int(number)][1].body[0].lineno
                message = message.replace("`snippet`", "the code outside functions")
            if line > 0:  # line 0 is the added import
                found.setdefault(int(number), []).append(QualityFinding(rule, line, message))
    return found


def _imports_pandas(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "pandas" for alias in node.names)
        for node in ast.walk(tree)
    )


def _module_as_function(tree: ast.Module) -> str:
    """Returns the top-level statements as a function, because complexity is only measured for functions."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    body = [node for node in tree.body if not isinstance(node, definitions)]
    lines = "\n".join(ast.unparse(ast.Module([node], [])) for node in body) or "pass"
    return "def snippet():\n" + "\n".join(f"    {line}" for line in lines.splitlines())


def _ruff(folder: str) -> Iterator[dict[str, Any]]:
    """Yields ruff's findings in the files of a folder, in its JSON form."""
    from ruff import find_ruff_bin

    command = [find_ruff_bin(), "check", "--isolated", "--no-cache", "--ignore-noqa", "--no-respect-gitignore"]
    command += ["--output-format", "json", "--select", ",".join(RULES), "--line-length", str(LINE_LENGTH)]
    command += ["--target-version", f"py3{sys.version_info.minor}"]
    command += ["--config", f"lint.mccabe.max-complexity = {HIGHEST_COMPLEXITY}", "."]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    try:
        yield from json.loads(ran.stdout)
    except ValueError as error:
        raise RuntimeError(f"ruff does not run: {ran.stderr.strip()[:500]}") from error
