"""What is installed: extras, plug-ins, where all came from; and functions that are imported when called."""
