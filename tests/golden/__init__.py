"""Generated kernels, one readable file for each kind of call and target. `python -m tests.golden` rewrites them."""
