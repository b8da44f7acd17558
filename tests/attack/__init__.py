"""Random differentiable Slang programs, each compared with torch in float64. How to run it: README.md."""
