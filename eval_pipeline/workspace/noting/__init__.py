"""Notes of commands: what each was asked for, has done, and left due."""
