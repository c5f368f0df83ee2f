"""Gradients that a person wrote: in NumPy, and as loops that numba compiles."""

from benchmarks.peers.peer import Peer, specific_text

__all__ = ["HAND", "NUMBA"]

HAND = Peer("hand", specific_text("hand"))
NUMBA = Peer("numba", specific_text("numba"), package="numba")
