"""Evaluation of language models on data work: accuracy with intervals, failures, and what a right answer costs."""

__version__ = "0.1.0"
