"""What refuses a task on a node or a card whatever else runs there, one rule a file."""
