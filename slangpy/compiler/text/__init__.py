"""What is done to the text of kernels between Slang and the compiler of the device, and what is read from it."""
