"""The provider `http`: an application of the user's own behind HTTP."""
