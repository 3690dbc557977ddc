"""nvidia-smi: what it prints of the cards of a node."""
