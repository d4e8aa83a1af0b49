"""The true dynamics: the network integrated, and differentiated, as it is."""
