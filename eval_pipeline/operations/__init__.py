"""What commands do beside running the chain: planning, importing, pruning, looking after the installation."""
