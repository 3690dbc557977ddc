"""Slurm: what its commands and configuration files say read, its commands written."""
