"""Plans for people: tables for a terminal and pictures of who is on which card."""
