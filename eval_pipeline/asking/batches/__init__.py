"""Calls handed in together and answered later."""
