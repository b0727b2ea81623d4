"""The page of a turn: what the store holds about it, its sections, and the list from which it was opened."""
