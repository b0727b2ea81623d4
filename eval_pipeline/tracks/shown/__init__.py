"""What is shown of a turn: cards, and two results side by side."""
