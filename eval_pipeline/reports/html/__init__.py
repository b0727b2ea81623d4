"""Self-contained pages: no network, no fonts of others, every text of a model escaped by jinja2."""
