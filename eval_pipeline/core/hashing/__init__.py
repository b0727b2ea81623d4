"""Hashes of much in little memory, and small files that are known by theirs."""
