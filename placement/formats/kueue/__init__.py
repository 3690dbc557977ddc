"""Kueue: its objects read, its topology assignments written."""
