"""What the home page shows: figures and pictures of each suite, its table, and the views that are kept."""
