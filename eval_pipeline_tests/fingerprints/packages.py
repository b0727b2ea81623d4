"""Small packages written into a folder, and what is reached in them."""

from pathlib import Path
from textwrap import dedent

from eval_pipeline.fingerprints.fingerprints import Fingerprints
from eval_pipeline.fingerprints.places import Root


def write(folder: Path, files: dict[str, str], name: str = "pkg") -> Path:
    """A package with these modules (`a/b` for `pkg.a.b`, `__init__` for its own file; with a dot: as it is)."""
    package = folder / name
    for module, text in {"__init__": "", **files}.items():
        path = package / (module if "." in module else f"{module}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        if not (path.parent / "__init__.py").exists():
            (path.parent / "__init__.py").touch()
    return package


def of(
    folder: Path, files: dict[str, str], *roots: Root, cache: Path | None = None, stops: tuple[str, ...] = ()
) -> str:
    """The digest of roots in a package with these modules."""
    found = Fingerprints(cache, roots={"pkg": write(folder, files)}, stops=stops)
    return found.of(*(roots or ("pkg.a:f",))).code


def reached(folder: Path, files: dict[str, str], *roots: Root) -> set[str]:
    """The places reached, those in `pkg.a` by name alone."""
    found = Fingerprints(roots={"pkg": write(folder, files)}).reached(*(roots or ("pkg.a:f",)))
    return {place.removeprefix("pkg.a:") for place in found}


class Change:
    """Compares two versions of a package."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, 0

    def matters(self, before: str | dict[str, str], after: str | dict[str, str], *roots: Root) -> bool:
        """Whether the digest of the roots changes; a text is the module `pkg.a`."""
        return self._digest(before, roots) != self._digest(after, roots)

    def _digest(self, files: str | dict[str, str], roots: tuple[Root, ...]) -> str:
        self._made += 1
        return of(self._folder / str(self._made), {"a": files} if isinstance(files, str) else files, *roots)
