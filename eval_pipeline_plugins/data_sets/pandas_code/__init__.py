"""Importers of data sets that other projects made."""
