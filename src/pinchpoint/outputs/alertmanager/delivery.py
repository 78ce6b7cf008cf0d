"""Every member of the cluster, side by side: one that hangs holds up no other and no evaluation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from pinchpoint.outputs.alertmanager.member import Member
from pinchpoint.outputs.alertmanager.notice import Notices
from pinchpoint.outputs.alertmanager.settings import AlertmanagerSettings
from pinchpoint.snapshot import AlertmanagerReport
from pinchpoint.sources.http import HttpClient


class Delivery:
    """Tells all members. A member that is still busy with the last notices hears of these with the next ones.

    ``clock`` is monotonic. Everything here is called from the event loop's thread.
    """

    def __init__(self, clock: Callable[[], float], unix_time: Callable[[], float] = time.time) -> None:
        self._clock, self._unix_time = clock, unix_time
        self._client = HttpClient()
        self._settings = AlertmanagerSettings()
        self._members: tuple[Member, ...] = ()
        self._busy: dict[Member, asyncio.Task[None]] = {}

    def follow(self, settings: AlertmanagerSettings) -> None:
        """Tells those of ``settings`` from now on. Members that stay remember what they were told."""
        if settings.pace != self._settings.pace:
            self._members = ()
        before, self._settings = {member.target.url: member for member in self._members}, settings
        self._members = tuple(
            member
            if (member := before.get(target.url)) is not None and member.target == target
            else Member(target, settings, self._client, self._clock, self._unix_time)
            for target in settings.targets
        )
        for gone in set(self._busy).difference(self._members):
            self._busy[gone].cancel()

    def tell(self, notices: Notices) -> None:
        """Begins to tell every member that is not busy. Waits for none."""
        for member in self._members:
            if member not in self._busy:
                task = asyncio.create_task(member.tell(notices), name=f"alertmanager {member.target.url}")
                self._busy[member] = task
                task.add_done_callback(partial(self._ended, member))

    def _ended(self, member: Member, _: asyncio.Task[None]) -> None:
        del self._busy[member]

    def reports(self) -> tuple[AlertmanagerReport, ...]:
        return tuple(member.report() for member in self._members)

    async def close(self, deadline_seconds: float) -> None:
        """Lets what is under way arrive, until the deadline. Ends no alert: what fires still does, and a restart must
        not page anew; if there is none, Alertmanager resolves it by itself, four resends later."""
        if self._busy:
            await asyncio.wait(self._busy.values(), timeout=deadline_seconds)
        for task in self._busy.values():
            task.cancel()
        await self._client.close()
