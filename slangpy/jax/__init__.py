"""The only folder that knows JAX. Its modules are imported when one of their names is asked for."""
