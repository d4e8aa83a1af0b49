"""Series that lie in pieces: in a file too large for memory, or on a cluster.

What is computed of them here are sums: a function is sent to every piece, and what it gives
is added up. Who asks for a sum does not know where the pieces are.
"""

from .base import Pieces
from .find import pieces_of
from .sliced import SlicedPieces

__all__ = ["Pieces", "SlicedPieces", "pieces_of"]
