"""The pool of connections, with a bound on what a server may say that nobody asked."""

import asyncio
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError

MAX_WAITING_ANSWERS = 64  # one is asked for; interim ones (100, 103) may come before it


class BoundedConnector(aiohttp.TCPConnector):
    """A connector that ends a connection on which answers pile up.

    aiohttp reads over interim answers for as long as they come, megabytes in one turn of the loop, which so stands
    still for seconds, with every deadline on it.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        handler: type[ResponseHandler] = _Bounded
        self._factory = partial(handler, loop=self._loop)


class _Bounded(ResponseHandler):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._is_flooded = False

    def data_received(self, data: bytes) -> None:
        if self._is_flooded:  # more of it may have been read before the connection ended
            return
        super().data_received(data)
        if len(self._buffer) > MAX_WAITING_ANSWERS and self.transport is not None:
            self._is_flooded = True
            self._buffer.clear()
            self.set_exception(HttpProcessingError(code=400, message="answers that nobody asked for"))
            self.transport.abort()
