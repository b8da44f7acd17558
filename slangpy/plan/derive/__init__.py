"""What a plan needs for derivatives."""
