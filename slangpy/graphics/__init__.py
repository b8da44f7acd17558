"""Rasterisation: the Python face of render pipelines. Passes and descriptors are native."""

from __future__ import annotations

from .pipeline import RenderPipeline as RenderPipeline

__all__ = ["RenderPipeline"]
