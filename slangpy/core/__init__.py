"""The paths under which existing programs import modules, functions and structs; the names are those of `slangpy`."""
