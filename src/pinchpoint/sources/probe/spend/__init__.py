"""What hosted probes may cost: caps that hold over restarts, crashes and several processes.

The worst that a request can cost is written into the ledger before it is sent, and put right from the server's token
counts afterwards: a process that dies in between has spent it. ``Admission`` is the door of one target, ``Purse`` the
one ledger behind all of them. Pure: ``amount``, ``estimate``, ``bill``, ``book``, ``days``, ``pacing``.

Is not: a price list (no price is shipped as fact), nor in the way of local targets, which cost nothing.
"""

from pinchpoint.sources.probe.spend.admission import Admission, Grant
from pinchpoint.sources.probe.spend.purse import Purse
from pinchpoint.sources.probe.spend.settings import CapSettings, PriceSettings

__all__ = ["Admission", "CapSettings", "Grant", "PriceSettings", "Purse"]
