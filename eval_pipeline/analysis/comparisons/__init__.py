"""Evaluations of a suite side by side: model against model, and night after night."""
