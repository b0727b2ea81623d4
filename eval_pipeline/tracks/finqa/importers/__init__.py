"""Readers of foreign data sets for the track `finqa`, one file a format."""
