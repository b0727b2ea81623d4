"""What the code of a snippet does and how well it is written, told from its syntax tree: nothing is run."""
