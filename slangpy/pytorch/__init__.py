"""All that knows torch: autograd, torch.compile, tensors in and out."""
