"""TLS contexts: whom we trust, and who we are."""

import os
import ssl
import stat
from dataclasses import dataclass

from pinchpoint.snapshot import HttpAccess

MAX_FILE_BYTES = 4 * 2**20  # the authorities of a whole system have a quarter of one


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The part of an access that a context is made of."""

    ca: str = ""
    certificate: str = ""
    key: str = ""
    verify: bool = True

    @classmethod
    def of(cls, access: HttpAccess) -> "TlsFiles":
        return cls(access.ca_file, access.certificate_file, access.key_file, access.verify)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path in (self.ca, self.certificate, self.key) if path)


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """A client's context. Blocks: it reads the files, or the system's authorities where no other is named.

    Raises ``ValueError`` with file, cause and remedy.
    """
    for key, path in (("ca_file", files.ca), ("certificate_file", files.certificate), ("key_file", files.key)):
        if path:
            _check_file(key, path)
    try:
        context = ssl.create_default_context(cafile=files.ca or None)
    except (OSError, ValueError) as error:
        raise ValueError(f"ca_file {files.ca}: {_cause(error)}; it should hold certificates in PEM form") from None
    if not files.verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    if files.certificate:
        try:
            context.load_cert_chain(files.certificate, files.key or None, password=_no_passphrase)
        except (OSError, ValueError) as error:
            names = f"certificate_file {files.certificate}, key_file {files.key or files.certificate}"
            raise ValueError(f"{names}: {_cause(error)}; give a certificate and its bare key in PEM form") from None
    return context


def _check_file(key: str, path: str) -> None:
    """OpenSSL would wait for the writer of a pipe, and read a file of any size to its end."""
    try:
        found = os.stat(path)
    except OSError:
        return  # OpenSSL tells
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
        what = "larger than 4 MiB" if stat.S_ISREG(found.st_mode) else "no regular file"
        raise ValueError(f"{key} {path} is {what}; name a file in PEM form")


def _no_passphrase() -> str:
    raise ValueError("the key is encrypted")  # OpenSSL would ask on the terminal


def _cause(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):  # an OSError too
        return (error.reason or "not in PEM form").replace("_", " ").lower()
    return (error.strerror or type(error).__name__).lower() if isinstance(error, OSError) else str(error)
