"""Claims of speed: one script each, us and the peer in turns."""
