"""Authorities and certificates, made on the spot by the ``openssl`` program."""

import itertools
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_CA = """
[ca]
default_ca = ours
[ours]
database = {folder}/index.txt
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
unique_subject = no
policy = any
[any]
commonName = supplied
[leaf]
subjectAltName = {names}
basicConstraints = CA:FALSE
authorityKeyIdentifier = keyid
"""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path

    def server(self, clients: "Authority | None" = None) -> ssl.SSLContext:
        """A server that has it, and that demands certificates of ``clients`` where given."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients.file)
        return context


class Authority:
    """Signs certificates. ``file`` is its own."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder / name
        self.folder.mkdir()
        self.file, self._key = self.folder / "ca.pem", self.folder / "ca.key"
        self._numbers = itertools.count()
        (self.folder / "index.txt").touch()
        _openssl("req", "-x509", *_NEW_KEY, "-keyout", self._key, "-out", self.file, "-days", 2, "-subj", f"/CN={name}")

    def issue(self, *names: str, end: str = "20491231235959Z") -> Certificate:
        """For ``names`` like ``IP:127.0.0.1`` and ``DNS:chat``, from the year 2020 to ``end``."""
        stem = self.folder / f"leaf-{next(self._numbers)}"
        made = Certificate(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        request, config = stem.with_suffix(".csr"), stem.with_suffix(".conf")
        config.write_text(_CA.format(folder=self.folder, names=",".join(names)))
        _openssl("req", *_NEW_KEY, "-keyout", made.key, "-out", request, "-subj", f"/CN={stem.name}")
        _openssl(
            *("ca", "-batch", "-notext", "-config", config, "-extensions", "leaf", "-cert", self.file),
            *("-keyfile", self._key, "-in", request, "-out", made.certificate),
            *("-startdate", "20200101000000Z", "-enddate", end),
        )
        return made


def self_signed(folder: Path, *names: str) -> Certificate:
    """For ``names`` as above, vouched for by nobody."""
    made = Certificate(folder / "self.pem", folder / "self.key")
    _openssl(
        *("req", "-x509", *_NEW_KEY, "-keyout", made.key, "-out", made.certificate, "-days", 2, "-subj", "/CN=self"),
        *("-addext", f"subjectAltName={','.join(names)}"),
    )
    return made


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
