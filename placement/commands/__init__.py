"""The commands of the command line, one module each; every one reads, calls and prints."""
