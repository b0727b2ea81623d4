"""Follows references from definition to definition."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from eval_pipeline.fingerprints.records import EFFECTS, Module
from eval_pipeline.fingerprints.resolving import Class, Found, Resolver
from eval_pipeline.fingerprints.trees import text_digest

ALL = "*"


class Node(NamedTuple):
    """A definition; for members of a class, `context` is the class or subclass through which they are reached."""

    module: str
    name: str
    context: Class | None = None


@dataclass(slots=True)
class Leads:
    """The references of a definition, resolved.

    Attributes:
        nodes: other definitions.
        meanings: the definitions that its names refer to; the source text alone does not determine them.
        libraries: names imported from outside.
    """

    nodes: set[Node] = field(default_factory=set)
    meanings: set[str] = field(default_factory=set)
    libraries: set[str] = field(default_factory=set)


class Reacher:
    """Finds everything that definitions reach; results are cached."""

    def __init__(self, resolver: Resolver, data: Callable[[str, Module], str | None], stops: Collection[str]) -> None:
        """Creates the object without following any references yet.

        Args:
            resolver: resolves paths.
            data: returns the digest of a module's data files.
            stops: places whose own code is part of the fingerprint but whose references are not followed; modules and
                packages named here are left out completely.
        """
        self._resolver, self._data, self._stops = resolver, data, frozenset(stops)
        self._left_out = tuple(f"{stop}." for stop in stops if ":" not in stop)
        self._leads: dict[Node, Leads] = {}
        self._digests: dict[Node, str] = {}

    def reached(self, nodes: Iterable[Node]) -> tuple[dict[str, str], set[str]]:
        """Returns place → digest of every definition reached, and the names imported from outside."""
        seen: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                found = self.leads(node).nodes - seen
                waiting += [one for one in found if not f"{one.module}.".startswith(self._left_out)]
        same: dict[str, list[Node]] = {}  # one definition, reached through several classes
        libraries: set[str] = set()
        for node in seen:
            libraries |= self._leads[node].libraries
            if node.name != ALL:
                same.setdefault(f"{node.module}:{node.name}", []).append(node)
        digests = {place: self._digest(*nodes) for place, nodes in same.items()}
        for module in {node.module for node in seen}:
            read = self._resolver.module(module)
            if read is not None and (data := self._data(module, read)) is not None:
                digests[f"{module}:DATA_FILES contents"] = data
        return digests, libraries

    def _digest(self, node: Node, *others: Node) -> str:
        """Returns the digest of a definition's source and of what its names refer to."""
        if not others and node in self._digests:
            return self._digests[node]
        read = self._resolver.module(node.module)
        meanings = set().union(*(self._leads[one].meanings for one in (node, *others)))
        tree = read.definitions[node.name].tree if read is not None else ""
        digest = text_digest("\n".join([tree, *sorted(meanings)]))
        if not others:
            self._digests[node] = digest
        return digest

    def leads(self, node: Node) -> Leads:
        """Returns the resolved references of a definition."""
        if node not in self._leads:
            self._leads[node] = self._find(node)
        return self._leads[node]

    def _find(self, node: Node) -> Leads:
        leads, read = Leads(), self._resolver.module(node.module)
        if read is None:
            return leads
        if node.name == ALL:
            leads.nodes.update(Node(node.module, name) for name in read.definitions if "." not in name)
            return leads
        if EFFECTS in read.definitions and node.name != EFFECTS:
            leads.nodes.add(Node(node.module, EFFECTS))
        if f"{node.module}:{node.name}" in self._stops:
            return leads
        for path in read.definitions[node.name].references:
            if not path.startswith("?"):
                self._follow(node, path, leads)
        if node.name in read.bases:
            self._whole(Class(node.module, node.name), read, leads)
        return leads

    def _whole(self, cls: Class, read: Module, leads: Leads) -> None:
        """Adds all members of a class and the classes of its fields, because pydantic instantiates these."""
        for member in read.members[cls.name]:
            definition = read.definitions[f"{cls.name}.{member}"]
            leads.nodes.add(Node(cls.module, f"{cls.name}.{member}", cls))
            for path in definition.references:
                if path.startswith("?"):
                    for found in self._resolver.chain(cls.module, path[1:]):
                        if not (self._resolver.is_class(found) and self._resolver.is_protocol(Class(*found[:2]))):
                            self._reach(found, path, leads)

    def _follow(self, node: Node, path: str, leads: Leads) -> None:
        """Adds what a path refers to."""
        if path.startswith("'"):
            self._place(path, leads)
        elif path == "*":
            leads.nodes.add(Node(node.module, ALL))
        elif path.startswith("*"):
            modules, classes = self._walk(node, path[1:], leads)
            leads.nodes.update(Node(module, ALL) for module in modules)
            leads.nodes.update(Node(*cls) for cls in classes)
        else:
            modules, classes = self._walk(node, path, leads)
            leads.nodes.update(Node(module, ALL) for module in modules)
            for cls in classes:
                for operator in self._resolver.operators(cls):
                    leads.nodes.add(Node(operator.module, operator.name, cls))
                    leads.meanings.add(str(operator))

    def _walk(self, node: Node, path: str, leads: Leads) -> tuple[set[str], set[Class]]:
        """Follows a path and adds everything on it; returns the modules, and the classes of instances, at its end."""
        root, *steps = path.split("|")
        resolver, after = self._resolver, None
        founds: list[Found] = []
        classes: set[Class] = set()
        if root.startswith("@"):
            classes = set(resolver.annotated(node.module, root[1:], node.context))
        elif root in {"%", "^"}:
            classes = {node.context} if node.context else set()
            after = Class(node.module, node.name.partition(".")[0]) if root == "^" else None
        elif root.startswith("="):
            start, _, name = root[1:].partition(":")
            founds = list(resolver.imported(start, name))
        else:
            founds = list(resolver.name(node.module, root))
        said = root if founds else ""
        for found in founds:
            self._reach(found, said, leads)
        for step in steps:
            following: list[Found] = []
            for found in founds:
                if not (found.name or found.outside):
                    following += resolver.attribute(found.module, step)
            said += "." + step
            for found in following:
                self._reach(found, said, leads)
            known = classes | resolver.classes_of(founds)
            classes = self._step(known, step, after, leads)
            founds, after = following, None
        modules = {found.module for found in founds if not (found.name or found.outside)}
        return modules, classes | resolver.classes_of(founds)

    def _step(self, classes: Iterable[Class], step: str, after: Class | None, leads: Leads) -> set[Class]:
        """Adds an attribute of each class that has it; returns the classes of its values."""
        types: set[Class] = set()
        for cls in classes:
            found, following = self._resolver.step(cls, step, after)
            types |= following
            if found is not None:
                leads.nodes.add(Node(found.module, found.name, cls))
                leads.meanings.add(str(found))
        return types

    def _reach(self, found: Found, said: str, leads: Leads) -> None:
        """Adds the target of a name."""
        leads.meanings.add(f"{said} {found}")
        if found.outside:
            leads.libraries.add(found.module.partition(".")[0])
        elif found.name:
            leads.nodes.add(Node(found.module, found.name))

    def _place(self, path: str, leads: Leads) -> None:
        """Adds the object that a text constant names, if it is one of ours."""
        sources = self._resolver.sources
        if not self._resolver.is_ours(path[1:].partition(":")[0]):
            return
        module, colon, name = path[1:].partition(":")
        if path.endswith(".*"):
            leads.nodes.update(Node(inner, ALL) for inner in sources.submodules(path[1:-2]))
        elif sources.file(module) is not None:
            nodes = place_nodes(self._resolver, module, name) if colon and name != ALL else [Node(module, ALL)]
            for node in nodes:
                leads.nodes.add(node)
                leads.meanings.add(f"{path} {node.module}:{node.name}")


def place_nodes(resolver: Resolver, module: str, qualified: str) -> list[Node]:
    """Returns the definitions that `module:Qual.name` refers to; empty if it is unknown."""
    first, *steps = qualified.split(".")
    nodes: list[Node] = []
    for found in resolver.name(module, first):
        if found.outside:
            continue
        if not found.name:
            if not steps:
                nodes.append(Node(found.module, ALL))
            else:
                nodes += place_nodes(resolver, found.module, ".".join(steps))
        elif not steps:
            nodes.append(Node(found.module, found.name))
        elif resolver.is_class(found):
            cls = Class(found.module, found.name)
            if (member := resolver.member(cls, steps[0])) is not None:
                nodes.append(Node(member.module, member.name, cls))
    return nodes
