"""Where this installation came from, and so how to make another one: eval-pipeline is on no package index."""

import json
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_NAME = "eval-pipeline"
_SCP = re.compile(r"^([^/@:]+@[^/:]+):")
"""How git also writes an address: `git@host:path`."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What installs the same version again.

    Attributes:
        line: for `requirements.txt`; paths are relative to its folder.
        wheel: the wheel file that `line` names, where this installation came from one.
        only_here: whether other machines cannot reach what `line` names.
    """

    line: str
    wheel: Path | None = None
    only_here: bool = False

    def line_with(self, extras: Collection[str]) -> str:
        """Returns the line that installs some extras, too: `eval-pipeline[sdmx] @ …`, or `….whl[sdmx]`."""
        named = f"[{','.join(sorted(extras))}]" if extras else ""
        return self.line.replace(_NAME, _NAME + named, 1) if self.line.startswith(_NAME) else self.line + named


def requirement() -> Requirement:
    """Returns what was installed: a commit of a git repository, a wheel, or what is in a folder."""
    told = _direct_url()
    url = told.get("url", "")
    path = Path(unquote(urlsplit(url).path))
    match told:
        case {"vcs_info": {"commit_id": commit}}:
            return _of_git(url, commit)
        case {"dir_info": _}:
            commit, address = _git(path, "rev-parse", "HEAD"), _git(path, "remote", "get-url", "origin")
            return _of_git(address or url, commit) if commit else Requirement(f"{_NAME} @ {url}", only_here=True)
        case {"archive_info": _} if url.startswith("file:"):
            return Requirement(f"./wheels/{path.name}", wheel=path)
        case {"archive_info": _}:
            return Requirement(f"{_NAME} @ {url}")
    return Requirement(f"{_NAME}=={version(_NAME)}")


def _direct_url() -> Mapping[str, Any]:
    """Returns what the installer wrote down (PEP 610); nothing if it took the package from an index."""
    try:
        text = distribution(_NAME).read_text("direct_url.json")
    except PackageNotFoundError:  # imported from a folder that nobody installed
        return {"url": Path(__file__).parents[3].as_uri(), "dir_info": {}}
    told: dict[str, Any] = json.loads(text or "{}")
    return told


def _of_git(address: str, commit: str) -> Requirement:
    address = Path(address).as_uri() if address.startswith("/") else _SCP.sub(r"ssh://\1/", address)
    return Requirement(f"{_NAME} @ git+{address}@{commit}", only_here=address.startswith("file:"))


def _git(folder: Path, *arguments: str) -> str:
    """Returns what git says of a clone in a folder; nothing if there is none, or no git."""
    command = ["git", "--git-dir", str(folder / ".git"), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
