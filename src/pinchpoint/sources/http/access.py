"""How an operator says with what credentials and over which TLS something is asked."""

import re
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from pinchpoint.snapshot import HttpAccess
from pinchpoint.sources.http.secret_file import read_secret
from pinchpoint.sources.http.tls import TlsFiles, tls_context

MAX_HEADERS = 20
MAX_HEADER_CHARACTERS = 8192  # more, and common servers refuse the request

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")  # a token, RFC 9110 section 5.1
# What the connection, not the operator, decides (RFC 9110 section 7.6.1), and what we ask for and must be able to read.
_OURS = re.compile(
    "host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|expect|accept(-encoding)?",
    re.IGNORECASE,
)


def _text(path: Path | None) -> str:
    return str(path) if path is not None else ""


def _secret(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""


def _check_file(key: str, path: Path | None) -> None:
    """A file that is missing is told when the configuration is read, not when an engine is."""
    if path is not None:
        try:
            read_secret(path)
        except ValueError as error:
            raise ValueError(f"{key} {error}") from None


class TlsSettings(BaseModel):
    """Whom to trust, and who we are. The files are read again when they change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ca_file: Path | None = Field(
        default=None, description="Authorities to trust, PEM, instead of the system's. Default: the system's."
    )
    certificate_file: Path | None = Field(
        default=None, description="Our certificate, PEM, where the server demands one. Default: none."
    )
    key_file: Path | None = Field(
        default=None, description="Its key, PEM, without a passphrase. Default: in certificate_file."
    )
    server_name: str = Field(
        default="",
        pattern=r"^[a-zA-Z0-9_.:-]*$",
        max_length=253,
        description="Name to expect in the server's certificate. Default: the URL's host.",
    )
    verify: bool = Field(
        default=True, description="Check the server's certificate. Default true: else anybody may answer for it."
    )

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.key_file is not None and self.certificate_file is None:
            raise ValueError("key_file is given without certificate_file; add the certificate that belongs to it")
        if not self.verify and (self.ca_file is not None or self.server_name):
            raise ValueError("verify is off, so ca_file and server_name mean nothing; remove them, or verify")
        if self.files.paths:
            tls_context(self.files)
        return self

    @property
    def files(self) -> TlsFiles:
        """What a context is made of."""
        return TlsFiles(_text(self.ca_file), _text(self.certificate_file), _text(self.key_file), self.verify)


class BasicAuthSettings(BaseModel):
    """A user's name and password."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    username: str = Field(pattern=r"^[^:\x00-\x1f\x7f]{1,256}$", description="Name of the user.")
    password: SecretStr | None = Field(default=None, max_length=1024, description="The password. Default: empty.")
    password_file: Path | None = Field(
        default=None, description="File with the password, read again when it changes. Default: none."
    )

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        if self.password is not None and self.password_file is not None:
            raise ValueError("password and password_file are both given; keep one")
        if not _secret(self.password).isprintable():
            raise ValueError("password holds a control character; give the bare password")
        _check_file("password_file", self.password_file)
        return self


class AccessSettings(BaseModel):
    """How to be let in. To be inherited by the settings of whatever is asked over HTTP.

    There is no such thing as a default for all: a credential goes to the servers it was written for.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    bearer_token: SecretStr | None = Field(
        default=None, description="Sent as Authorization: Bearer. Default: none, for vLLM leaves /metrics open."
    )
    bearer_token_file: Path | None = Field(
        default=None, description="File with the bearer token, read again when it changes. Default: none."
    )
    basic_auth: BasicAuthSettings | None = Field(
        default=None, description="User name and password, sent as Authorization: Basic. Default: none."
    )
    headers: dict[str, SecretStr] = Field(
        default_factory=dict,
        max_length=MAX_HEADERS,
        description="Further headers of each request, like {X-Api-Key: …}. Never shown. Default: none.",
    )
    tls: TlsSettings = Field(default=TlsSettings(), description="For https:// URLs. Default: the system's authorities.")

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            text = value.get_secret_value()
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name[:100]!r} is no name of a header; use letters, digits and hyphens")
            if _OURS.fullmatch(name):
                raise ValueError(f"header {name} is set by the connection itself; remove it")
            if not (text.isascii() and text.isprintable() and len(text) <= MAX_HEADER_CHARACTERS):
                raise ValueError(f"header {name} has a value that is too long or not printable ASCII; correct it")
        return headers

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        named = [
            name for name in ("bearer_token", "bearer_token_file", "basic_auth") if getattr(self, name) is not None
        ]
        named += [f"headers.{name}" for name in self.headers if name.lower() == "authorization"]
        if len(named) > 1:
            raise ValueError(f"{' and '.join(named)} are both given; keep one")
        token = _secret(self.bearer_token)
        if not (token.isascii() and token.isprintable()):
            raise ValueError("bearer_token holds a line break or another character no token has; give the bare token")
        _check_file("bearer_token_file", self.bearer_token_file)
        return self

    def access(self) -> HttpAccess:
        """The same as a value. Reads no file."""
        basic = self.basic_auth
        return HttpAccess(
            bearer_token=_secret(self.bearer_token),
            bearer_token_file=_text(self.bearer_token_file),
            basic_username=basic.username if basic else "",
            basic_password=_secret(basic.password) if basic else "",
            basic_password_file=_text(basic.password_file) if basic else "",
            headers={name: value.get_secret_value() for name, value in self.headers.items()},
            ca_file=_text(self.tls.ca_file),
            certificate_file=_text(self.tls.certificate_file),
            key_file=_text(self.tls.key_file),
            server_name=self.tls.server_name,
            verify=self.tls.verify,
        )
