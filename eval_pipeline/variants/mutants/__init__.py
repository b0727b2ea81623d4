"""Mutants of reference code in pandas: each drops or alters one of its requirements."""

from eval_pipeline.variants.mutants.making import mutants_of
from eval_pipeline.variants.mutants.mutant import Kind, Known, Mutant

__all__ = ["Kind", "Known", "Mutant", "mutants_of"]
