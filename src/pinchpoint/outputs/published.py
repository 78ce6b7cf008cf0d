"""What the web server serves: bytes that were rendered once, swapped in as one object."""

from dataclasses import dataclass

from pinchpoint.outputs.scene import Scene

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Rendered:
    """One exposition body, plain and gzipped."""

    plain: bytes
    gzipped: bytes


@dataclass(frozen=True, slots=True)
class Published:
    """The newest tick in every form that is served. A request picks; it renders no metric and waits for nothing."""

    scene: Scene
    text: Rendered
    openmetrics: Rendered
