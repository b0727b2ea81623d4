"""What providers behind HTTP share."""
