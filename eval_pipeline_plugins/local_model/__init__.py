"""The provider `local`: a small model on this machine."""
