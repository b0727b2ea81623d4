"""The journal: every response is written to disk before it is used."""
