"""Resolves paths: names through imports and re-exports, attributes through classes and their bases."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from eval_pipeline.fingerprints.parsed.records import EFFECTS, PROGRAM, Module
from eval_pipeline.fingerprints.sources import Sources


class Class(NamedTuple):
    """A top-level class in one of our modules."""

    module: str
    name: str


class ResolvedPlace(NamedTuple):
    """A definition (`name` of `module`), a module (`name` is empty), or something from a library (`outside`)."""

    module: str
    name: str = ""
    outside: bool = False

    def __str__(self) -> str:
        return f"{self.module}:{self.name}" if self.name else self.module


NO_CLASSES: frozenset[Class] = frozenset()
_VERSION = "__version__"
"""Says who made something, not how it is made: a release alone computes nothing again."""
_OF_EVERY_MODULE = frozenset({"__name__", "__file__", "__doc__", "__path__", "__spec__", _VERSION})


class Resolver:
    """Looks names up in modules, which are read on demand."""

    def __init__(self, sources: Sources, read: Callable[[str], Module | None], ours: Collection[str]) -> None:
        """Creates the object without looking anything up yet.

        Args:
            sources: finds modules.
            read: returns a parsed module, or None if it has no source.
            ours: the top-level packages that are followed.
        """
        self.sources, self.module, self._ours = sources, read, frozenset(ours)
        self._names: dict[tuple[str, str], tuple[ResolvedPlace, ...]] = {}
        self._ancestors: dict[Class, tuple[Class, ...]] = {}
        self._protocols: dict[Class, bool] = {}
        self._types: dict[tuple[str, str, Class | None], frozenset[Class]] = {}

    def is_ours(self, module: str) -> bool:
        """Whether a module belongs to a package that is followed."""
        return module.partition(".")[0] in self._ours

    def name(self, module: str, name: str) -> tuple[ResolvedPlace, ...]:
        """Returns what a name in one of our modules refers to; several results if it is bound in several ways."""
        key = (module, name)
        if key not in self._names:
            self._names[key] = ()  # stops recursion, as packages may import from each other in circles
            self._names[key] = tuple(dict.fromkeys(self._look_up(module, name)))
        return self._names[key]

    def _look_up(self, module: str, name: str) -> Iterable[ResolvedPlace]:
        read = self.module(module)
        found: list[ResolvedPlace] = []
        if name == _VERSION:
            return found
        if read is not None:
            if name in read.definitions and name not in {EFFECTS, PROGRAM}:
                found.append(ResolvedPlace(module, name))
            for target, inner in read.imports.get(name, ()):
                found += self.imported(target, inner)
            if not found:
                for star in read.stars:
                    found += self.imported(star, name) if self.is_ours(star) else (ResolvedPlace(star, "*", True),)
        if not found and self.sources.exists(f"{module}.{name}"):
            found.append(ResolvedPlace(f"{module}.{name}"))
        return found

    def imported(self, module: str, name: str | None) -> tuple[ResolvedPlace, ...]:
        """Resolves `from module import name`, or `import module` if the name is None or empty."""
        if not self.is_ours(module):
            return (ResolvedPlace(module, name or "", outside=True),)
        if not name:
            return (ResolvedPlace(module),)
        return self.name(module, name)

    def attribute(self, module: str, name: str) -> tuple[ResolvedPlace, ...]:
        """Resolves `module.name`; returns the whole module if that is undecidable."""
        found = self.name(module, name)
        if found or name in _OF_EVERY_MODULE:
            return found
        return (ResolvedPlace(module, "*"),)

    def is_class(self, found: ResolvedPlace) -> bool:
        """Whether it is a class whose members are known."""
        read = None if found.outside else self.module(found.module)
        return read is not None and found.name in read.bases

    def ancestors(self, cls: Class) -> tuple[Class, ...]:
        """Returns the class and its bases in our packages, nearest first."""
        if cls not in self._ancestors:
            self._ancestors[cls] = (cls,)
            further = [one for base in self._bases(cls) if self.is_class(base) for one in self.ancestors(_class(base))]
            # a base shared by several classes comes after all of them
            later = [one for place, one in enumerate(further) if one not in further[place + 1 :] and one != cls]
            self._ancestors[cls] = (cls, *later)
        return self._ancestors[cls]

    def is_protocol(self, cls: Class) -> bool:
        """Whether the class is a protocol."""
        if cls not in self._protocols:
            self._protocols[cls] = any(base.outside and base.name == "Protocol" for base in self._bases(cls))
        return self._protocols[cls]

    def member(self, cls: Class, name: str, after: Class | None = None) -> ResolvedPlace | None:
        """Returns the definition of an attribute in the class or its nearest base.

        With `after`, only in bases behind that one.
        """
        order = self.ancestors(cls)
        if after in order:
            order = order[order.index(after) + 1 :]
        for one in order:
            read = self.module(one.module)
            if read is not None and (qualified := f"{one.name}.{name}") in read.definitions:
                return ResolvedPlace(one.module, qualified)
        return None

    def step(self, cls: Class, name: str, after: Class | None = None) -> tuple[ResolvedPlace | None, frozenset[Class]]:
        """Returns an attribute of a class, and the classes of its value.

        Annotations of containers count as their elements, so instances may be asked for methods of the container.
        """
        if (found := self.member(cls, name, after)) is not None:
            return found, self.types(found.module, found.name, cls)
        return None, frozenset({cls}) if name in _OF_CONTAINERS else NO_CLASSES

    def operators(self, cls: Class) -> list[ResolvedPlace]:
        """Returns the special methods of a class (`__len__`, `__eq__`, …), except those that create instances."""
        found: dict[str, ResolvedPlace] = {}
        for one in self.ancestors(cls):
            read = self.module(one.module)
            for name in read.members[one.name] if read is not None else ():
                if name.startswith("__") and name.endswith("__") and name not in _MAKING:
                    found.setdefault(name, ResolvedPlace(one.module, f"{one.name}.{name}"))
        return list(found.values())

    def annotated(self, module: str, chain: str, context: Class | None) -> frozenset[Class]:
        """Returns the classes that a name in an annotation refers to; empty for protocols and library classes."""
        classes: set[Class] = set()
        for found in self.chain(module, chain):
            if found.outside:
                if found.name == "Self" and context is not None:
                    classes.add(context)
            elif self.is_class(found):
                classes.add(_class(found))
            elif found.name and found.name != "*":
                classes |= self.types(found.module, found.name, None)
        return frozenset(one for one in classes if not self.is_protocol(one))

    def chain(self, module: str, chain: str) -> list[ResolvedPlace]:
        """Resolves `a.b.c` within a module, or `=module:b.c` from anywhere."""
        if chain.startswith("="):
            start, _, rest = chain[1:].partition(":")
            steps = rest.split(".") if rest else []
            current = [ResolvedPlace(start, "", outside=not self.is_ours(start))]
        else:
            first, *steps = chain.split(".")
            current = list(self.name(module, first))
        for step in steps:
            following: list[ResolvedPlace] = []
            for found in current:
                if found.outside:
                    following.append(ResolvedPlace(found.module, step, outside=True))
                elif not found.name:
                    following += self.name(found.module, step)
            current = following
        return current

    def types(self, module: str, name: str, context: Class | None) -> frozenset[Class]:
        """Returns the classes that a definition, or its return value, may be an instance of."""
        key = (module, name, context)
        if key not in self._types:
            self._types[key] = NO_CLASSES
            read = self.module(module)
            paths = read.definitions[name].types if read is not None else ()
            self._types[key] = frozenset(cls for path in paths for cls in self._typed(module, path, context))
        return self._types[key]

    def _typed(self, module: str, path: str, context: Class | None) -> frozenset[Class]:
        root, *steps = path.split("|")
        founds: list[ResolvedPlace] = []
        if root.startswith("@"):
            classes = self.annotated(module, root[1:], context)
        elif root in {"%", "^"}:
            classes = frozenset({context}) if context else NO_CLASSES
        else:
            founds = self.chain(module, root)
            while steps and founds and all(not (found.name or found.outside) for found in founds):
                founds = [inner for found in founds for inner in self.name(found.module, steps[0])]
                steps = steps[1:]
            classes = self.classes_of(founds)
        for step in steps:
            classes = frozenset(one for cls in classes for one in self.step(cls, step)[1])
        return frozenset(cls for cls in classes if not self.is_protocol(cls))

    def classes_of(self, founds: Iterable[ResolvedPlace]) -> frozenset[Class]:
        """Returns the classes of what names refer to: a class itself, a function's return type, or a value's class."""
        classes: set[Class] = set()
        for found in founds:
            if self.is_class(found):
                classes.add(_class(found))
            elif found.name and found.name != "*" and not found.outside:
                classes |= self.types(found.module, found.name, None)
        return frozenset(classes)

    def _bases(self, cls: Class) -> list[ResolvedPlace]:
        read = self.module(cls.module)
        paths = read.bases[cls.name] if read is not None else ()
        return [found for path in paths for found in self.chain(cls.module, path.replace("|", "."))]


_OF_CONTAINERS = frozenset({"get", "items", "values", "pop", "popitem", "popleft", "setdefault", "copy"})
_MAKING = frozenset(
    {"__init__", "__new__", "__post_init__", "__init_subclass__", "__slots__", "__class_getitem__", "__match_args__"}
)


def _class(found: ResolvedPlace) -> Class:
    return Class(found.module, found.name)
