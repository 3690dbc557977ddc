"""A placement under construction: which cards and zones tasks have, whose tasks they are, and what it is worth."""
