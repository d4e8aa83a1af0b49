"""The true dynamics: the network integrated, and differentiated, as it is."""

from .rest import rest_of_map, rest_of_rates

__all__ = ["rest_of_map", "rest_of_rates"]
