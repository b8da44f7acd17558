"""Values that calls take besides tensors and arrays: those that are written once, and references to host values."""
