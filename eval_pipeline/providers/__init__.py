"""Model providers behind one protocol, and the prices of their calls."""
