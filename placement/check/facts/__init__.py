"""What the snapshot says, read once, in whole numbers and in columns."""
