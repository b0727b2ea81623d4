"""What is asked: scope, plan, draws, and how much of it is in memory at once."""
