"""Variants of data and mutants of gold, for all tracks whose gold can be executed.

A variant is other data about which the same question can be asked; a mutant is the gold with one of its requirements
dropped or altered. An answer that is right on every variant is considered right; an answer with the same results as a
mutant lacks the requirement that the mutant lacks.
"""
