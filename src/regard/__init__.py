"""Build, train and look inside attention."""
