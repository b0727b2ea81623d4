"""What is made of what, whether it is current, and whether it belongs together."""
