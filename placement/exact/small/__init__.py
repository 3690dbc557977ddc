"""Small instances solved to the end: over all patterns of their nodes, or task by task."""
