"""Real Alertmanagers behind real locks, and notices to tell them."""

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from pinchpoint.outputs.alertmanager import AlertmanagerSettings, Delivery, Notice, Notices
from tests.e2e.stack import Alertmanager
from tests.fakes.certificates import Authority, Certificate

# bcrypt of "let me in", as Alertmanager's web configuration wants it
USER, PASSWORD, HASH = "pinchpoint", "let me in", "$2b$04$73bM34SUzWFv30A31mHI9OK83VHYlxxJEFAjDJgqO3B60abPhchYG"


class LockedAlertmanager(Alertmanager):
    """One that speaks TLS, wants a certificate of its own authority and a password, and lives below a prefix."""

    scheme = "https"
    prefix = "/am"
    ready_path = "/am/-/ready"

    def __init__(self, folder: Path, webhook_url: str, authority: Authority) -> None:
        super().__init__(folder, webhook_url)
        self.authority = authority
        self.server: Certificate = authority.issue("IP:127.0.0.1")
        self.client: Certificate = authority.issue("DNS:pinchpoint")

    def let_in(self) -> Mapping[str, Any]:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        context.load_cert_chain(self.client.certificate, self.client.key)
        return {
            "connector": aiohttp.TCPConnector(ssl=context),
            "headers": {"Authorization": aiohttp.encode_basic_auth(USER, PASSWORD)},
        }

    def flags(self, listen: str) -> Sequence[str]:
        web = self.folder / "web.yml"
        tls = {
            "cert_file": str(self.server.certificate.absolute()),
            "key_file": str(self.server.key.absolute()),
            "client_auth_type": "RequireAndVerifyClientCert",
            "client_ca_file": str(self.authority.file.absolute()),
        }
        web.write_text(yaml.safe_dump({"tls_server_config": tls, "basic_auth_users": {USER: HASH}}))
        return (*super().flags(listen), f"--web.config.file={web}", f"--web.route-prefix={self.prefix}")

    async def alerts(self) -> list[dict[str, Any]]:
        return list(await self.get(f"{self.prefix}/api/v2/alerts"))


def notice(name: str = "PinchpointKVCacheHigh", *, ended: bool = False, since: float = 60.0, **labels: str) -> Notice:
    now = time.time()
    return Notice(
        labels={"alertname": name, "severity": "critical", "source": "pinchpoint", **labels},
        annotations={"summary": "The KV cache is nearly full."},
        starts_at=now - since,
        resolved_at=now - 1 if ended else None,
    )


def notices(*every: Notice, valid_seconds: float = 240.0) -> Notices:
    return Notices(at=time.time(), every=every, valid_seconds=valid_seconds, generator_url="http://node:10770/")


def delivery(*targets: Mapping[str, Any], **settings: Any) -> Delivery:
    made = Delivery(time.monotonic)
    quick = {"evaluation_interval_seconds": 1, "resend_seconds": 1}
    made.follow(AlertmanagerSettings.model_validate({"targets": targets, **quick, **settings}))
    return made


async def idle(delivery: Delivery, seconds: float = 15.0) -> None:
    """Until no member is busy."""
    await until(lambda: not delivery._busy, seconds)


async def until(what: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.02)
