"""Random programs without derivatives over all scalar types, against NumPy arrays of the same width: see ../README.md."""
