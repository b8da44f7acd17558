"""Forward programs with lanes and without: see ../README.md."""
