"""What tasks of a job owe one another: all of them or none, and how near they lie."""
