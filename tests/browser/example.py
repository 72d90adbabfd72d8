"""A small site with a page for each fault, under a strict Content-Security-Policy."""

import asyncio
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"
LAX = {"foreign"}
"""Pages without the policy."""
PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/style.css"></head>
<body><main><h1>{title}</h1>{body}</main></body>
</html>"""
BODIES = {
    "sound": "<p>Nothing is wrong here.</p><p id='script'></p><script src='/script.js'></script>",
    "inline-script": "<script>document.title = 'attacked'</script>",
    "inline-style": "<p style='color: red'>Red</p>",
    "foreign": "<img alt='' src='http://elsewhere.invalid/pixel.gif'>",
    "throwing": "<script src='/throwing.js'></script>",
    "complaining": "<script src='/complaining.js'></script>",
    "incomplete": "<img alt='' src='/absent.png'>",
    "streaming": "<p id='news'>old</p><script src='/streaming.js'></script>",
    "unlabelled": "<form><input name='key'></form><p class='pale'>Hard to read</p>",
    "small": "<p><button class='small'>a</button><button class='small'>b</button></p>",
}
FILES = {
    "icon.svg": "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'/>",
    "style.css": ".pale { color: #ccc; background: #fff }"
    " .small { width: 9px; height: 9px; padding: 0; border: 0 }",
    "script.js": "document.getElementById('script').textContent = 'it runs'",
    "throwing.js": "throw new TypeError('not a function')",
    "complaining.js": "console.error('out of order')",
    "streaming.js": "new EventSource('/events').onmessage = event => {"
    " document.getElementById('news').textContent = event.data }",
}
TYPES = {"svg": "image/svg+xml", "css": "text/css", "js": "text/javascript"}


def _page(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in BODIES:
        return Response(status_code=404)
    page = PAGE.format(title=name.capitalize(), body=BODIES[name])
    return HTMLResponse(page, headers={} if name in LAX else {"Content-Security-Policy": POLICY})


def _file(request: Request) -> Response:
    name, kind = request.path_params["name"], request.path_params["kind"]
    content = FILES.get(f"{name}.{kind}")
    return Response(content, media_type=TYPES[kind]) if content else Response(status_code=404)


def _events(request: Request) -> Response:
    async def events() -> AsyncIterator[str]:
        yield "data: new\n\n"
        await asyncio.sleep(60)

    return StreamingResponse(events(), media_type="text/event-stream")


def example(url: str) -> Starlette:
    """The site; it does not care where it is served."""
    return Starlette(
        routes=[Route("/events", _events), Route("/{name}.{kind}", _file), Route("/{name}", _page)]
    )
