"""Mutants of code in pandas: each drops or alters one of its requirements."""

from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.lent import (
    Ranked,
    lent_mutants,
    requirement_count,
    shared,
)
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.making import mutants_of
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.mutant import Kind, Known, Mutant
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants.normal import normal

__all__ = ["Kind", "Known", "Mutant", "Ranked", "lent_mutants", "mutants_of", "normal", "requirement_count", "shared"]
