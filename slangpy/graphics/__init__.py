"""Rasterisation and ray tracing: the Python face of pipelines. Passes, structures and descriptors are native."""

from __future__ import annotations

from .pipeline import RenderPipeline as RenderPipeline
from .ray_tracing import RayTracingPipeline as RayTracingPipeline

__all__ = ["RayTracingPipeline", "RenderPipeline"]
