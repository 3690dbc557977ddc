"""Volcano: its objects read, its nominations written."""
