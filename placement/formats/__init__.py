"""Readers of outside formats, one file each; imported only by the command line and by users."""
