"""Checks what an attempt has answered, changed and done."""
