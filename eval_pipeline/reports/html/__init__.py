"""Self-contained pages that need no network and no other files; jinja2 escapes every text that a model wrote."""
