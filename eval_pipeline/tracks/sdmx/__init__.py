"""Indicator selection from statistical data sets described in SDMX (docs/sdmx.md)."""
