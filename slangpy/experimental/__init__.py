"""The paths of what was once experimental."""
