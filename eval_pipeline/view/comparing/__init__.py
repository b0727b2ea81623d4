"""Evaluations side by side: which ones, on which turns they agree, their answers, and the paired test."""
