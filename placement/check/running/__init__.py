"""What running work breaks today: found, and told in the notes of every plan."""
