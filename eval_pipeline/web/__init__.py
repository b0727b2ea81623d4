"""What stands before a web server on this machine, whatever it serves: who may ask, and for what."""
