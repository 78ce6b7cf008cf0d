"""The dialects: a file per API, all of one shape (``dialect.py``). A new one is a file here and a row in this table.

Is not: a client. Who sends, reads sockets and stamps is ``exchange.py``.
"""

from collections.abc import Mapping

from pinchpoint.sources.probe.dialects.anthropic import Anthropic
from pinchpoint.sources.probe.dialects.azure_openai import AzureOpenAI
from pinchpoint.sources.probe.dialects.dialect import Dialect, DialectName
from pinchpoint.sources.probe.dialects.gemini import Gemini
from pinchpoint.sources.probe.dialects.openai_chat import OpenAIChat, OpenAICompletions
from pinchpoint.sources.probe.dialects.openai_responses import OpenAIResponses
from pinchpoint.sources.probe.dialects.parameters import Parameters

DIALECTS: Mapping[DialectName, type[Dialect]] = {
    dialect.name: dialect
    for dialect in (OpenAIChat, OpenAICompletions, OpenAIResponses, AzureOpenAI, Anthropic, Gemini)
}

__all__ = ["DIALECTS", "Dialect", "DialectName", "Parameters"]
