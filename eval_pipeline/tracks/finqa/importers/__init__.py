"""Importers of foreign data sets for the track `finqa`, one file per format."""
