"""Finds the files of modules without importing them."""

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

OWN = frozenset({"eval_pipeline", "eval_pipeline_plugins"})
"""Our packages."""


class Sources:
    """Locates the source of modules.

    Attributes:
        listed: packages whose modules were listed.
    """

    def __init__(self, roots: Mapping[str, Path] | None = None) -> None:
        """Creates the object without searching anything yet.

        Args:
            roots: top-level package → folder to read instead of the one that would be imported.
        """
        self._given = {name: str(folder) for name, folder in (roots or {}).items()}
        self._files: dict[str, str | None] = {}
        self._folders: dict[str, tuple[str, ...]] = {}
        self.listed: set[str] = set()
        self._listed: dict[str, frozenset[str]] = {}

    def known(self) -> dict[str, str | None]:
        """Returns every module that was looked for, with its file."""
        return dict(self._files)

    def file(self, module: str) -> str | None:
        """Returns a module's source file; None if there is no such module or it has no source (a folder, compiled)."""
        if module not in self._files:
            self._find(module)
        return self._files[module]

    def exists(self, module: str) -> bool:
        """Whether the module, or a folder of modules with that name, exists."""
        return self.file(module) is not None or bool(self._folders[module])

    def submodules(self, module: str) -> list[str]:
        """Returns the full names of the modules directly inside a package."""
        self.listed.add(module)
        found = {
            name.removesuffix(".py")
            for folder in (self._folders[module] if self.exists(module) else ())
            for name in self._names(folder)
        }
        return sorted(f"{module}.{name}" for name in found - {"__init__"} if self.exists(f"{module}.{name}"))

    def _names(self, folder: str) -> frozenset[str]:
        if folder not in self._listed:
            try:
                entries = os.listdir(folder)
            except OSError:
                entries = []
            found = {name for name in entries if name.endswith(".py") or name.isidentifier()}
            self._listed[folder] = frozenset(found - {"__pycache__"})
        return self._listed[folder]

    def _find(self, module: str) -> None:
        package, _, name = module.rpartition(".")
        if not package:
            self._files[module], self._folders[module] = self._find_top(module)
            return
        if package not in self._files:
            self._find(package)
        file, folders = None, []
        for folder in self._folders[package]:
            names = self._names(folder)
            inner = os.path.join(folder, name)
            if name in names and "__init__.py" in self._names(inner):
                file, folders = os.path.join(inner, "__init__.py"), [inner]
                break
            if name + ".py" in names:
                file = inner + ".py"
                break
            if name in names and os.path.isdir(inner):
                folders.append(inner)
        self._files[module], self._folders[module] = file, tuple(folders)

    def _find_top(self, name: str) -> tuple[str | None, tuple[str, ...]]:
        if name in self._given:
            folder = self._given[name]
            return (os.path.join(folder, "__init__.py") if "__init__.py" in self._names(folder) else None), (folder,)
        loaded = sys.modules.get(name)
        file, folders = getattr(loaded, "__file__", None), getattr(loaded, "__path__", None)
        if loaded is None:
            spec = find_spec(name)  # imports nothing for a top-level name
            file = spec.origin if spec and spec.has_location else None
            folders = spec.submodule_search_locations if spec else None
        return (file if file and file.endswith(".py") else None), tuple(folders or ())
