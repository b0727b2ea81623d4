"""Cases: how their files, settings, schemas and templates are read."""
