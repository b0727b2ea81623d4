"""The search of candidates in a catalogue, and what a question gives of them."""
