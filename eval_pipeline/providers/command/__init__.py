"""The provider `command`: a program of the user's own that works on tasks by itself."""
