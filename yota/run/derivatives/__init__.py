"""Compiled derivatives: one life cycle for gradients, Jacobians, Hessians and products."""
