"""Schemas of databases, whatever their source."""
