"""What a plan says that it is worth: values, bounds and figures, each worked out anew."""
