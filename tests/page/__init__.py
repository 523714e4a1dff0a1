"""A package, so that its tests can share a browser that ends with them."""
