"""Track `agent`: tasks that are worked on with tools, in a world of files and databases."""
