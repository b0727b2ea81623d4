"""Work on other processes and machines: a port for any engine, and Dask behind it (docs/scale.md)."""
