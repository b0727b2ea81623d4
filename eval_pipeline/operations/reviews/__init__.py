"""Reviews of answers by people, and proposals for the gold from them."""
