"""How every source that speaks HTTP asks: one bounded GET, and failures with a reason of the closed set.

Is below the sources, which all may use it and which it does not know. Reads no answer: that is whoever asked's.
"""

from pinchpoint.sources.http.failure import SourceError
from pinchpoint.sources.http.fetch import Answer, fetch, open_session

__all__ = ["Answer", "SourceError", "fetch", "open_session"]
