"""Model providers behind one protocol, the journal of their responses, prices."""
