"""The provider `anthropic`: Claude through the Anthropic SDK."""
