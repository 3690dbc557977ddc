"""The policies of schedulers in use and of papers, one a file, each true to what it is named after."""
