"""Evaluations side by side: which, on which turns they agree, what they said there, and the paired test."""
