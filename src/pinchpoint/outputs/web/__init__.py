"""TELL over HTTP: the status page, its JSON, and the rendered metrics as bytes.

Every answer is made from the newest published tick. A request waits for no source and no diagnosis; the page and the
JSON are rendered at most once per tick, in a thread.

Is not: a renderer of metrics (exposition), a place that measures or decides, or a router to anything behind it: no
request makes pinchpoint call another server.
"""

from pinchpoint.outputs.web.gpu_switch import GpuSwitch
from pinchpoint.outputs.web.listen import ListenError
from pinchpoint.outputs.web.page import page
from pinchpoint.outputs.web.server import WebServer
from pinchpoint.outputs.web.settings import WebSettings
from pinchpoint.outputs.web.status import diagnoses, status

__all__ = ["GpuSwitch", "ListenError", "WebServer", "WebSettings", "diagnoses", "page", "status"]
