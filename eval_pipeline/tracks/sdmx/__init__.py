"""Indicator selection from statistical data sets described in SDMX (spec/sdmx.md)."""
