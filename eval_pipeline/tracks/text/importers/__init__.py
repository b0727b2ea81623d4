"""Importers of foreign data sets for the track."""
