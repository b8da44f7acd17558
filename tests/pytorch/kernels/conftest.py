from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

PLACES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    """The torch device that the tensors lie on."""
    return request.param


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Writes a Slang file and loads it; the same source gives the same file, and so the module that is there already."""
    import slangpy

    folder = tmp_path_factory.mktemp("kernels")

    def load(source: str, **options: Any) -> Any:
        path = folder / f"kernels_{hashlib.sha256(source.encode()).hexdigest()[:16]}.slang"
        if not path.exists():
            path.write_text(source, "utf-8")
        return slangpy.loadModule(path, **options)

    return load
