"""Functions with their derivatives: gradients, Jacobians, Hessians, products with them."""
