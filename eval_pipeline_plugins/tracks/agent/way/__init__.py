"""The way of an attempt: what its steps read, and where it left every way that leads to the gold."""
