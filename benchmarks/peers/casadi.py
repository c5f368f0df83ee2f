"""CasADi: expressions over scalars, evaluated by its virtual machine; only workloads that bring such a text."""

from benchmarks.peers.peer import Peer, specific_text

__all__ = ["PEER"]

PEER = Peer("casadi", specific_text("casadi"), package="casadi")
