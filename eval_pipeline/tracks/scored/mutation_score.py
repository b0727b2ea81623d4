"""Mutation scores: how many mutants of the gold a turn distinguishes from it, and what would reveal the others."""

from collections.abc import Iterable, Mapping, Sequence

from eval_pipeline.core.values import value


@value
class Survivor:
    """A mutant that gives the same result as the gold.

    Attributes:
        words: description of the change that can follow "as if".
        tables: small tables, as texts by name, on which it gives another result; empty if none were found.
        expected: the right result on them, as text.
        returned: the mutant's result on them, as text.
    """

    words: str
    tables: Mapping[str, str]
    expected: str = ""
    returned: str = ""


@value
class TurnMutants:
    """The outcome of testing a turn with the mutants of its gold.

    Attributes:
        mutants: number of mutants.
        survivors: the mutants that give the same result as the gold.
    """

    turn_id: str
    mutants: int
    survivors: Sequence[Survivor]


@value
class MutationScore:
    """The mutation score of several turns.

    Attributes:
        mutants: number of mutants that are not equivalent to the gold.
        killed: number of those that give another result than the gold.
        equivalent: mutants that people have listed as equivalent, and that do survive.
        survivors: the others that survive, by turn.
    """

    mutants: int
    killed: int
    equivalent: int
    survivors: Mapping[str, Sequence[Survivor]]

    @property
    def share(self) -> float | None:
        """Share of the mutants that are killed; None if there are none."""
        return self.killed / self.mutants if self.mutants else None


def mutation_score(turns: Iterable[TurnMutants], equivalent: Mapping[str, Sequence[str]]) -> MutationScore:
    """Returns the score of several turns together.

    Args:
        turns: the result for each turn.
        equivalent: words of mutants that are equivalent to the gold, by turn.
    """
    mutants = equal = 0
    left: dict[str, Sequence[Survivor]] = {}
    for turn in turns:
        listed = set(equivalent.get(turn.turn_id, ()))
        survivors = [one for one in turn.survivors if one.words not in listed]
        equal += len(turn.survivors) - len(survivors)
        mutants += turn.mutants
        if survivors:
            left[turn.turn_id] = survivors
    counted = mutants - equal
    return MutationScore(counted, counted - sum(map(len, left.values())), equal, left)
