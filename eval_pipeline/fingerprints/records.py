"""What is kept of a module that was read: its definitions, what each refers to, its imports.

References are paths, texts whose steps are separated by `|`; see `names.py` for who makes and `resolving.py` for who
follows them:

    name|step|step      a name of the module; what it names is reached
    @name.name|step     an instance of the class of that annotation; only the steps are reached
    %|step  ^|step      `self` or `cls`, and `super()`
    =module:name|step   an import inside a function (also `@=module:name|step`)
    'module:name        a text constant that may be a place
    *path               something of which any part may be asked for
    ?path               what the annotation of a class's field names, followed where the class is reached as a whole
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FUNCTION, CLASS, VALUE, INSTANCE = "f", "c", "v", "i"
"""Kinds of definitions; the last is an attribute that methods bind (`self.x = ...`)."""

EFFECTS = ""
"""The name under which the statements of a module are kept that belong to no name; reached with anything in it."""
PROGRAM = "__main__"
"""The name under which `if __name__ == "__main__":` is kept."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition at the top of a module, or a member of a class there.

    Attributes:
        kind: one of the kinds above.
        tree: digest of its source.
        references: paths to what it refers to.
        types: paths to the classes that it, or what it returns, may be an instance of.
    """

    kind: str
    tree: str
    references: tuple[str, ...]
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """A module as it was read.

    Attributes:
        definitions: by name, members of classes by `Class.member`.
        bases: paths to the bases of each class.
        members: names of what each class has, without those of its bases.
        imports: module and name (None for the module itself) that each name may stand for.
        stars: modules of `from module import *`.
        data_files: what `DATA_FILES` names.
    """

    definitions: Mapping[str, Definition]
    bases: Mapping[str, tuple[str, ...]]
    members: Mapping[str, tuple[str, ...]]
    imports: Mapping[str, tuple[tuple[str, str | None], ...]]
    stars: tuple[str, ...]
    data_files: tuple[str, ...]


def to_plain(module: Module) -> list[Any]:
    """The module as lists and texts, for the cache."""
    definitions = {name: [d.kind, d.tree, d.references, d.types] for name, d in module.definitions.items()}
    return [definitions, module.bases, module.imports, module.stars, module.data_files]


def from_plain(plain: list[Any]) -> Module:
    """What `to_plain` wrote, read back."""
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
    """Names of the members of each class."""
    members: dict[str, list[str]] = {name: [] for name in classes}
    for name in definitions:
        owner, dot, member = name.partition(".")
        if dot:
            members[owner].append(member)
    return {name: tuple(found) for name, found in members.items()}
