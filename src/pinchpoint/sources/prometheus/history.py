"""Range queries to a Prometheus, cut into pieces that it answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import aiohttp

from pinchpoint.sources.http import JSON, HttpClient, SourceError
from pinchpoint.sources.prometheus.settings import PrometheusSettings

MAX_POINTS = 10_000  # Prometheus refuses more than 11,000 for a series
_LONGEST_WORDS = 300

Labels = frozenset[tuple[str, str]]
Step = tuple[float, Mapping[Labels, float]]  # Unix seconds, and what the expression yielded then, without names


class QueryError(Exception):
    """One line: why an expression has no answer. ``refused`` where the server answered, and answers others."""

    def __init__(self, detail: str, *, refused: bool) -> None:
        super().__init__(detail)
        self.refused = refused


class PrometheusHistory:
    """Asks one server. ``warnings`` collects what its answers warn of: an answer may be partial.

    ``now`` is a monotonic clock, seconds.
    """

    def __init__(self, settings: PrometheusSettings, client: HttpClient, now: Callable[[], float]) -> None:
        self.warnings: dict[str, None] = {}  # in order, each once
        self._settings = settings
        self._access = settings.access()
        self._client = client
        self._now = now

    async def steps(self, expr: str, times: Sequence[float]) -> AsyncIterator[Step]:
        """What ``expr`` yields at each of ``times``, which are equally spaced. Raises ``QueryError``."""
        for first in range(0, len(times), MAX_POINTS):
            piece = times[first : first + MAX_POINTS]
            found = await self._piece(expr, piece)
            for at in piece:
                yield at, found.get(round(at * 1000), {})

    async def _piece(self, expr: str, times: Sequence[float]) -> dict[int, dict[Labels, float]]:
        """By milliseconds."""
        spacing = times[1] - times[0] if len(times) > 1 else 1.0
        # nocache: VictoriaMetrics would otherwise move the bounds to answer from its cache.
        asked = {"query": expr, "start": f"{times[0]:.3f}", "end": f"{times[-1]:.3f}", "step": f"{spacing:.3f}"}
        answer = await self._ask(f"{self._settings.url}/api/v1/query_range?{urlencode({**asked, 'nocache': '1'})}")
        found: dict[int, dict[Labels, float]] = {}
        try:
            for series in answer["data"]["result"]:
                labels = frozenset((name, text) for name, text in series["metric"].items() if name != "__name__")
                for at, value in series["values"]:
                    found.setdefault(round(float(at) * 1000), {})[labels] = float(value)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise QueryError("the answer is none of a range query; is this a Prometheus?", refused=False) from None
        return found

    async def _ask(self, url: str) -> dict[str, Any]:
        status, body = await self._get(url)
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or "status" not in answer:
            raise QueryError(f"HTTP {status} and no JSON of a Prometheus; {_remedy(status)}", refused=False)
        for key in ("warnings", "infos"):
            self.warnings.update(dict.fromkeys(_line(text) for text in answer.get(key) or ()))
        if answer["status"] != "success":
            refused = status not in (401, 403)
            raise QueryError(f"HTTP {status}, {_line(answer.get('error', 'no reason given'))}", refused=refused)
        return answer

    async def _get(self, url: str) -> tuple[int, bytes]:
        body = bytearray()
        try:
            async with (
                asyncio.timeout(self._settings.timeout_seconds),
                self._client.open(url, now=self._now(), access=self._access, headers=JSON) as response,
            ):
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > self._settings.max_answer_bytes:
                        response.close()
                        raise QueryError(
                            f"the answer is larger than {self._settings.max_answer_bytes} bytes", refused=True
                        )
                return response.status, bytes(body)
        except TimeoutError:
            raise QueryError(f"no answer within {self._settings.timeout_seconds:g} s", refused=False) from None
        except SourceError as error:
            raise QueryError(error.detail, refused=False) from None
        except aiohttp.ClientError:
            raise QueryError("the connection broke in the middle of the answer", refused=False) from None


def _remedy(status: int) -> str:
    if status in (401, 403):
        return "give the credentials that it asks for"
    return "give the URL under which /api/v1/query_range lies" if status in (200, 404) else "see its log"


def _line(text: object) -> str:
    """Foreign words as one printable line of limited length."""
    return "".join(c if c.isprintable() else " " for c in str(text)[:_LONGEST_WORDS])
