"""What programs use around calls: the command line, stubs, notebooks, measuring, comparing, testing and pickling."""
