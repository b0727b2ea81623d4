"""Importers of foreign data sets."""
