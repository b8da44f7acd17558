"""What all folders may use: it imports nothing of the package but the native modules and `config`."""
