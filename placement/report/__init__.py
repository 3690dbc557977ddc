"""Plans for people: tables for a terminal, and pictures of who is on which card and in which domain."""
