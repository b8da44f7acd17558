"""JAX's arrays lie on the host in these tests; JAX on a GPU would also take most of the memory that the other tests need."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
