"""What to do about a cluster: each a short use of compiling, a model and the check."""
