"""The loadModule API: kernels written the CUDA way, called from Python (docs/slangtorch.md)."""
