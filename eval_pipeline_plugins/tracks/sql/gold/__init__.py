"""Doubts about accepted queries, and mutants of them."""
