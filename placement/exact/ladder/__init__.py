"""Where blocks of cards are all that counts: whole counts against these blocks, and places, which there always are."""
