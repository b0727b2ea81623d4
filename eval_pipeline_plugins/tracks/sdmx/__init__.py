"""The track `sdmx`: selecting indicators from statistical data sets described in SDMX (docs/sdmx.md)."""
