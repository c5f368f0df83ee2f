"""Peers: whatever computes a value and a gradient; each imports its library only when it takes part."""

from benchmarks.peers import autograd, casadi, gpu, handwritten, jax, plain, torch
from benchmarks.peers.peer import Peer
from benchmarks.peers.yota import yota_peer

__all__ = ["Peer", "all_peers"]


def all_peers(targets: list[str]) -> list[Peer]:
    """Plain NumPy and yota first, then everyone else; for the CUDA target those who have a GPU."""
    if "cuda" in targets:
        return [plain.PEER, *map(yota_peer, targets), gpu.JAX, gpu.TORCH_COMPILED, gpu.FUSED, gpu.HAND_CUDA]
    return [
        plain.PEER,
        *(yota_peer(target) for target in targets),
        autograd.PEER,
        jax.PEER,
        torch.PEER,
        casadi.PEER,
        handwritten.NUMBA,
        handwritten.HAND,
    ]
