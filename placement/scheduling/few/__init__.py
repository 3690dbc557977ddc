"""Few jobs settled for good: every order that may be best, or every start."""
