"""The user's own application behind HTTP."""
