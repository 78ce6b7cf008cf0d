"""What lies behind an outcome, where that decides what to do. For people: never a label."""

from enum import StrEnum


class Cause(StrEnum):
    """A finer reason. One that people are told of by name begins the reading's detail."""

    # empty_output
    REASONING_BUDGET = "reasoning_budget"
    TOOL_ONLY = "tool_only"
    REFUSAL = "refusal"
    # forbidden
    STREAM_NOT_ALLOWED = "stream_not_allowed"
    # not_streamed
    WHOLE = "whole"
    BUFFERED = "buffered"
    # what answers is not, or not only, the API that was asked
    HTML_PAGE = "html_page"
    NO_HTTP = "no_http"
    NO_CHOICES = "no_choices"
    NO_MODEL_LIST = "no_model_list"
    HTTPS_WANTED = "https_wanted"
    # auth, before anything was sent
    KEY_UNREADABLE = "key_unreadable"
