"""A whole small API on the scripted server: its paths, its keys, its models, and its own words for a refusal."""

from collections.abc import Collection

from tests.fakes.openai_server import Answer, FakeRequest, Wire, delta, replying, usage_chunk

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def api(
    root: str = "/v1",
    *,
    keys: Collection[str] = (),
    models: Collection[str] = ("gpt-4o-mini", "gpt-4o", "claude-sonnet-4-5"),
    lists: bool = True,
    open_list: bool = False,
    paths: Collection[str] = ("/chat/completions", "/messages", "/responses"),
    page: bool = False,
) -> Answer:
    """``keys``: those that are let in, by either header; none: everybody is. A refusal echoes the key, as some do.

    ``open_list``: the list is given to anybody. ``page``: what is at no path of the API is a web page.
    """

    async def answer(request: FakeRequest, wire: Wire) -> None:
        key = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        path = request.path.partition("?")[0].removeprefix(root)
        listing = request.method == "GET" and path == "/models" and lists
        if not request.path.startswith(root + "/") or not (listing or path in paths):
            missing = ("<html>site</html>", "text/html") if page else ('{"detail": "Not Found"}', "application/json")
            await replying(404 if not page else 200, missing[0], missing[1])(request, wire)
        elif keys and key not in keys and not (listing and open_list):
            error = {"message": f"Incorrect API key provided: {key}", "code": "invalid_api_key"}
            await replying(401, {"error": error})(request, wire)
        elif listing:
            await replying(200, {"object": "list", "data": [{"id": model} for model in models]})(request, wire)
        elif request.json["model"] not in models:
            error = {"message": f"The model `{request.json['model']}` does not exist", "code": "model_not_found"}
            await replying(404, {"error": error})(request, wire)
        else:
            await wire.send(SSE)
            await _speak(path, wire)
            await wire.end()

    return answer


async def _speak(path: str, wire: Wire) -> None:
    if path == "/chat/completions":
        await wire.event(delta(content="ok"), delta(content=".", finish="stop"), usage_chunk(2), "[DONE]")
    elif path == "/messages":
        await wire.event(
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "ok"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        )
    else:
        await wire.event(
            {"type": "response.output_text.delta", "delta": "ok"},
            {"type": "response.completed", "response": {"status": "completed", "usage": {"output_tokens": 2}}},
        )
