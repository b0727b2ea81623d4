"""The parsed form of a module: its definitions with their references, and its imports.

References are paths: texts whose steps are separated by `|`. They are made in `names.py` and followed in
`resolving.py`:

    name|step|step      a name of the module; it leads to the object of that name
    @name.name|step     an instance of the class of that annotation; it leads only to the steps
    %|step  ^|step      `self` or `cls`, and `super()`
    =module:name|step   an import inside a function (also `@=module:name|step`)
    'module:name        a text constant that may be a place
    *path               an object of which any attribute may be used
    __file__            where the module itself stands
    ?path               named in the annotation of a class's field; followed only if all of the class is used
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FUNCTION, CLASS, VALUE, INSTANCE = "f", "c", "v", "i"
"""Kinds of definitions; the last one is an attribute bound in methods (`self.x = ...`)."""

EFFECTS = ""
"""Key for statements of a module that define no name; they are reached with anything in the module."""
PROGRAM = "__main__"
"""Key for `if __name__ == "__main__":`."""
OWN_PLACE = frozenset({"__name__", "__file__", "__package__", "__path__", "__spec__"})
"""Names by which a module learns where it stands, so that this matters to what uses them."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A top-level definition of a module, or a member of a top-level class.

    Attributes:
        kind: one of the kinds defined at the top of the module.
        tree: digest of its source.
        references: paths to what it refers to.
        types: paths to the classes that it, or its return value, may be an instance of.
    """

    kind: str
    tree: str
    references: tuple[str, ...]
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed module.

    Attributes:
        definitions: the definitions by name; members of classes by `Class.member`.
        bases: class → paths to its bases.
        members: class → names of its own members, without inherited ones.
        imports: name → its possible targets as (module, name), with None for the module itself.
        stars: modules of `from module import *`.
        data_files: files named in `DATA_FILES`.
    """

    definitions: Mapping[str, Definition]
    bases: Mapping[str, tuple[str, ...]]
    members: Mapping[str, tuple[str, ...]]
    imports: Mapping[str, tuple[tuple[str, str | None], ...]]
    stars: tuple[str, ...]
    data_files: tuple[str, ...]


def to_plain(module: Module) -> list[Any]:
    """Returns the module as lists and texts, for the cache."""
    definitions = {name: [d.kind, d.tree, d.references, d.types] for name, d in module.definitions.items()}
    return [definitions, module.bases, module.imports, module.stars, module.data_files]


def from_plain(plain: list[Any]) -> Module:
    """Restores what `to_plain` returned."""
    definitions, bases, imports, stars, data_files = plain
    return Module(
        {name: Definition(d[0], d[1], tuple(d[2]), tuple(d[3])) for name, d in definitions.items()},
        {name: tuple(paths) for name, paths in bases.items()},
        members_of(bases, definitions),
        {name: tuple((target[0], target[1]) for target in targets) for name, targets in imports.items()},
        tuple(stars),
        tuple(data_files),
    )


def members_of(classes: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Returns the names of each class's members."""
    members: dict[str, list[str]] = {name: [] for name in classes}
    for name in definitions:
        owner, dot, member = name.partition(".")
        if dot:
            members[owner].append(member)
    return {name: tuple(found) for name, found in members.items()}
