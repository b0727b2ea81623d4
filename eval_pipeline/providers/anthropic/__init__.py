"""Claude through the Anthropic SDK."""
