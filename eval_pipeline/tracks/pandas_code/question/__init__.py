"""What a question asks for, read from its words."""
