"""Tensors of PyTorch for the scripts that need them: to the GPU and back."""

import torch


def put(array):
    """An array on the GPU."""
    return torch.from_numpy(array).to("cuda")


def host(tensor):
    """A tensor as numpy has it."""
    return tensor.detach().cpu().numpy()
