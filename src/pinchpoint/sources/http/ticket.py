"""What one request is let in with, from an access whose secrets and certificates may lie in files that change."""

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog
from yarl import URL

from pinchpoint.snapshot import HttpAccess, Reason
from pinchpoint.sources.http.failure import SourceError
from pinchpoint.sources.http.kept import Kept
from pinchpoint.sources.http.secret_file import read_secret
from pinchpoint.sources.http.tls import TlsFiles, tls_context

OPEN = HttpAccess()
MAX_NAMED = 10_000  # servers whose certificate is not checked, each named once in the log

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Ticket:
    """The headers and the TLS of one request. ``context`` ``None``: verified by the system's authorities."""

    headers: Mapping[str, str] = field(repr=False)
    context: ssl.SSLContext | None = None
    server_name: str | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def unsaid(self, error: SourceError) -> SourceError:
        """``error`` without what was sent to whom it quotes: a server may give it back."""
        detail = error.detail
        for secret in self.secrets:
            detail = detail.replace(secret, "***")
        return error if detail == error.detail else SourceError(error.reason, detail)


class Tickets:
    """Issues tickets. Targets that name the same files share what is made of them."""

    def __init__(self) -> None:
        self._secrets: Kept[str, str] = Kept(read_secret, lambda path: (path,))
        self._contexts = Kept(tls_context, lambda files: files.paths)
        self._named: set[str] = set()

    async def issue(
        self, url: URL, access: HttpAccess, headers: Mapping[str, str], now: float, *, at_once: bool = False
    ) -> Ticket:
        """For a request with ``headers`` to ``url``. Looks at the files at times, or ``at_once``.

        Raises ``SourceError`` when a file has never held what it should.
        """
        if access == OPEN:
            return Ticket(headers)
        token, password = access.bearer_token, access.basic_password
        try:
            if access.bearer_token_file:
                token = await self._secrets.get(access.bearer_token_file, now, at_once=at_once)
            if access.basic_password_file:
                password = await self._secrets.get(access.basic_password_file, now, at_once=at_once)
        except ValueError as error:
            raise SourceError(Reason.UNAUTHORIZED, str(error)) from None
        all_headers = {**headers, **access.headers}
        if token:
            all_headers["Authorization"] = f"Bearer {token}"
        elif access.basic_username:
            pair = f"{access.basic_username}:{password}".encode()
            all_headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        secrets = tuple(secret for secret in (token, password, *access.headers.values()) if secret)
        context = await self._context(url, access, now, at_once)
        return Ticket(all_headers, context, access.server_name or None, secrets)

    async def _context(self, url: URL, access: HttpAccess, now: float, at_once: bool) -> ssl.SSLContext | None:
        files = TlsFiles.of(access)
        if url.scheme != "https" or files == TlsFiles():
            return None
        if not access.verify and url.authority not in self._named and len(self._named) < MAX_NAMED:
            self._named.add(url.authority)
            _log.warning("certificate is not checked, so anybody may answer here; set tls.ca_file", at=url.authority)
        try:
            return await self._contexts.get(files, now, at_once=at_once)
        except ValueError as error:
            raise SourceError(Reason.TLS, str(error)) from None
