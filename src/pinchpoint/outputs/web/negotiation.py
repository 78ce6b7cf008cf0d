"""Which form of a body the client asked for."""


def wants_openmetrics(accept: str) -> bool:
    """True when ``application/openmetrics-text`` 1.x stands before any ``text/plain`` or wildcard in ``Accept``.

    The first match wins and q-values don't count, as in the official Python client. Version 0.0.1 gets plain text.
    """
    for entry in accept.split(","):
        media_type, *parameters = (part.strip().lower() for part in entry.split(";"))
        if media_type == "application/openmetrics-text":
            version = next((p.removeprefix("version=") for p in parameters if p.startswith("version=")), "1.0.0")
            if version.strip('"').startswith("1."):
                return True
        elif media_type in ("text/plain", "text/*", "*/*"):
            return False
    return False


def wants_json(accept: str) -> bool:
    """True when ``application/json`` stands before any form of metrics and any wildcard. The first match wins."""
    for entry in accept.split(","):
        media_type = entry.split(";")[0].strip().lower()
        if media_type == "application/json":
            return True
        if media_type in ("application/openmetrics-text", "text/plain", "text/*", "*/*"):
            return False
    return False


def wants_gzip(accept_encoding: str) -> bool:
    """True when ``Accept-Encoding`` names gzip (or ``*``) and does not refuse it with ``q=0``."""
    for entry in accept_encoding.split(","):
        coding, *parameters = (part.strip().lower() for part in entry.split(";"))
        if coding in ("gzip", "*"):
            return not any(p.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000") for p in parameters)
    return False
