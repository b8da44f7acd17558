"""Small networks that run on every device and inside of Slang functions: the Python face of `import slangpy.neural;`.

`slangpy.neural.nn` has the same as `torch.nn.Module`s.
"""

from __future__ import annotations

from .encodings import Encoding as Encoding, Frequency as Frequency, HashGrid as HashGrid
from .network import Network as Network
from .optimiser import Adam as Adam
from .shape import ACTIVATIONS as ACTIVATIONS

__all__ = ["ACTIVATIONS", "Adam", "Encoding", "Frequency", "HashGrid", "Network"]
