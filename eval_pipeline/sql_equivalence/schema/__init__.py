"""Schemas of databases, whatever they are read from."""
