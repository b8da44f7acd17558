"""Images on the host: bitmaps and their files, records of numbers, resampling, and textures made of them.

Pixels are NumPy arrays. Files go through OpenImageIO (`pip install slangpy[images]`); writing png needs nothing.
"""

from __future__ import annotations

from . import tev as tev
from .bitmap import Bitmap as Bitmap, PixelFormat as PixelFormat
from .filters import (
    BoxFilter as BoxFilter,
    FilterBoundaryCondition as FilterBoundaryCondition,
    GaussianFilter as GaussianFilter,
    LanczosFilter as LanczosFilter,
    MitchellFilter as MitchellFilter,
    TentFilter as TentFilter,
)
from .loader import TextureLoader as TextureLoader, YAHandling as YAHandling
from .save import save_image as save_image
from .structs import DataStruct as DataStruct, DataStructConverter as DataStructConverter

__all__ = [
    "Bitmap",
    "BoxFilter",
    "DataStruct",
    "DataStructConverter",
    "FilterBoundaryCondition",
    "GaussianFilter",
    "LanczosFilter",
    "MitchellFilter",
    "PixelFormat",
    "TentFilter",
    "TextureLoader",
    "YAHandling",
    "save_image",
    "tev",
]
