"""Time: which job starts when, on which devices; what that costs each job; and how far from the best that is."""
