"""An API server, as it is in a cluster and as ``kubectl proxy`` shows it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.kubernetes_api import FakeKubernetes, service_account


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return service_account(tmp_path_factory.mktemp("cluster"))


@pytest.fixture
async def secure(cluster: Path) -> AsyncIterator[FakeKubernetes]:
    (cluster / "token").write_text("first-token")
    async with FakeKubernetes(account=cluster) as api:
        yield api


@pytest.fixture
async def api() -> AsyncIterator[FakeKubernetes]:
    async with FakeKubernetes() as api:
        yield api
