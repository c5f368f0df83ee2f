"""Gradients, Jacobians, Hessians, JVPs, VJPs and HVPs."""
