"""The screens of sessions as MCP resources, `terminal://screen/NAME`, that notify of changes.

In older protocol versions a client subscribes to a resource, in newer ones it listens. Both get the
same notifications.
"""

import math
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import anyio
import anyio.abc
import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from tmux_debug_mcp.errors import ToolError, Words
from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.panes.pane import Pane

from .sessions import DEFAULT, Sessions

_PREFIX = "terminal://screen/"
_MIME_TYPE = "text/plain"

_Context = ServerRequestContext[None]
_Notify = Callable[[], Awaitable[None]]


class Screens:
    """The handlers of one client's requests for resources."""

    _tasks: anyio.abc.TaskGroup

    def __init__(self, sessions: Sessions, words: Words) -> None:
        self._sessions = sessions
        self._clock = sessions.engine.clock
        self._words = words
        # What ends the client's subscriptions, by their URIs.
        self._subscriptions: dict[str, anyio.CancelScope] = {}

    def handlers(self) -> Mapping[str, Any]:
        """Return the handlers, by the SDK's names for them."""
        return {
            "lifespan": self._connected,
            "on_list_resources": self._list,
            "on_list_resource_templates": self._templates,
            "on_read_resource": self._read,
            "on_subscribe_resource": self._subscribe,
            "on_unsubscribe_resource": self._unsubscribe,
            "on_subscriptions_listen": self._listen,
        }

    @asynccontextmanager
    async def _connected(self, _server: object) -> AsyncIterator[None]:
        """Watch what the client subscribes to while the block runs."""
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def _list(
        self, _ctx: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return a resource for each session, and for the default one even before it is made."""
        names = dict.fromkeys([DEFAULT, *(pane.name for pane in self._sessions.engine.panes)])
        resources = [
            types.Resource(
                name=name,
                uri=_PREFIX + quote(name, safe=""),
                mime_type=_MIME_TYPE,
                description=f"The screen of session '{name}'",
            )
            for name in names
        ]
        return types.ListResourcesResult(resources=resources)

    async def _templates(
        self, _ctx: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="screen",
            uri_template=_PREFIX + "{session}",
            mime_type=_MIME_TYPE,
            description="The screen of a session, by its name",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read(
        self, _ctx: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        with self._refusals(uri):
            screen = await capture_screen(await self._find(uri))
        contents = types.TextResourceContents(uri=uri, mime_type=_MIME_TYPE, text=screen.text())
        return types.ReadResourceResult(contents=[contents])

    async def _subscribe(
        self, ctx: _Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        uri = str(params.uri)
        with self._refusals(uri):
            await self._find(uri)
        if uri not in self._subscriptions:
            notify = partial(ctx.session.send_resource_updated, uri)
            self._subscriptions[uri] = self._watch(uri, notify)
        return types.EmptyResult()

    async def _unsubscribe(
        self, _ctx: _Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        watch = self._subscriptions.pop(str(params.uri), None)
        if watch:
            watch.cancel()
        return types.EmptyResult()

    async def _listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Notify the client of the changes of screens until the request ends."""
        bus = InMemorySubscriptionBus()
        wanted = params.notifications.resource_subscriptions or ()
        watches = [
            self._watch(uri, partial(bus.publish, ResourceUpdated(uri=uri)))
            for uri in dict.fromkeys(wanted)
            if uri.startswith(_PREFIX)
        ]
        try:
            return await ListenHandler(bus)(ctx, params)
        finally:
            for watch in watches:
                watch.cancel()

    async def _find(self, uri: str) -> Pane:
        """Return the session of a URI; MCPError if it is not one of a screen."""
        if not uri.startswith(_PREFIX):
            raise MCPError(
                types.INVALID_PARAMS,
                f"There is no resource '{uri[:80]}'. Screens are {_PREFIX}NAME.",
            )
        return await self._sessions.find(_session_of(uri))

    @contextmanager
    def _refusals(self, uri: str) -> Iterator[None]:
        """Turn a ToolError in the block into an MCPError with the words of the toolset."""
        try:
            yield
        except ToolError as error:
            text = error.text_for({}, self._words, {"session": _session_of(uri)})
            raise MCPError(types.INVALID_PARAMS, text) from error

    def _watch(self, uri: str, notify: _Notify) -> anyio.CancelScope:
        """Start notifying of a screen's changes; return what ends it."""
        scope = anyio.CancelScope()
        self._tasks.start_soon(self._serve, uri, notify, scope)
        return scope

    async def _serve(self, uri: str, notify: _Notify, scope: anyio.CancelScope) -> None:
        """Notify of a screen's changes until cancelled; go on after a failure."""
        with scope:
            while True:
                try:
                    await self._notify_of_changes(_session_of(uri), notify)
                except Exception:  # noqa: BLE001  a background task's failure is its own
                    traceback.print_exc(file=sys.stderr)
                await self._clock.sleep(self._clock.times.again_s)

    async def _notify_of_changes(self, name: str, notify: _Notify) -> None:
        """Notify of the changes of a session and its successors until cancelled."""
        followed: Pane | None = None
        while True:
            try:
                pane = await self._sessions.engine.find(name)
            except ToolError:
                pane = None
            if pane is None or pane is followed:
                await self._clock.sleep(self._clock.times.successor_s)
                continue
            if followed:
                await notify()
            followed = pane
            await _follow(pane, notify)


async def _follow(pane: Pane, notify: _Notify) -> None:
    """Notify of a pane's changes until it ends."""
    before = _version(pane)
    async with pane.subscribe() as subscription:
        while not await pane.ending():
            await subscription.wait(math.inf)
            now = _version(pane)
            if now != before:
                before = now
                await notify()
                await pane.clock.sleep(pane.clock.times.notify_s)
        if _version(pane) != before:
            await notify()


def _version(pane: Pane) -> tuple[int, int, int]:
    """Return a value that changes whenever the screen may have."""
    return pane.log.size, pane.log.columns, pane.log.rows


def _session_of(uri: str) -> str:
    return unquote(uri.removeprefix(_PREFIX))
