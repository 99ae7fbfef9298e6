"""The screens of sessions as MCP resources, `terminal://screen/NAME`, that notify of changes.

In older protocol versions a client subscribes to a resource, in newer ones it listens. Both get the
same notifications.
"""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from tmux_debug_mcp.errors import ToolError
from tmux_debug_mcp.panes.capturing import capture_screen
from tmux_debug_mcp.panes.pane import Pane

from .terminal import TOOLSET, Terminal
from .terminal_arguments import DEFAULT

_PREFIX = "terminal://screen/"
_MIME_TYPE = "text/plain"
# Shortest interval between two notifications of one screen.
_NOTIFY_S = 0.1
# Poll interval for a session that takes the place of one that has ended.
_SUCCESSOR_S = 0.25

_Context = ServerRequestContext[None]
_Notify = Callable[[], Awaitable[None]]


class Screens:
    """The handlers of MCP's requests for resources.

    Args:
        terminal: The toolset, which finds sessions.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._engine = terminal.engine
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        # The number of clients' subscriptions, and the task that watches, of each URI.
        self._interest: Counter[str] = Counter()
        self._watches: dict[str, anyio.CancelScope] = {}
        self._subscribers: dict[str, _Notify] = {}

    def handlers(self) -> Mapping[str, Any]:
        """Return the handlers, by the SDK's names for them."""
        return {
            "on_list_resources": self.list,
            "on_list_resource_templates": self.templates,
            "on_read_resource": self.read,
            "on_subscribe_resource": self.subscribe,
            "on_unsubscribe_resource": self.unsubscribe,
            "on_subscriptions_listen": self.listen,
        }

    async def list(
        self, _ctx: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return a resource for each session, and for the default one before it is made."""
        names = dict.fromkeys([DEFAULT, *(pane.name for pane in self._engine.panes)])
        resources = [
            types.Resource(
                name=name,
                uri=_uri(name),
                mime_type=_MIME_TYPE,
                description=f"The screen of session '{name}'",
            )
            for name in names
        ]
        return types.ListResourcesResult(resources=resources)

    async def templates(
        self, _ctx: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return the template of the URIs."""
        template = types.ResourceTemplate(
            name="screen",
            uri_template=_PREFIX + "{session}",
            mime_type=_MIME_TYPE,
            description="The screen of a session, by its name",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(
        self, _ctx: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return what a session shows.

        Raises:
            MCPError: There is no such session.
            ToolError: Its screen can't be read.
        """
        uri = str(params.uri)
        screen = await capture_screen(await self._find(uri))
        contents = types.TextResourceContents(uri=uri, mime_type=_MIME_TYPE, text=screen.text())
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(
        self, ctx: _Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Begin to notify the client of a screen's changes.

        Raises:
            MCPError: There is no such session.
        """
        uri = str(params.uri)
        await self._find(uri)
        if uri not in self._subscribers:
            self._watch(uri)
        self._subscribers[uri] = lambda: ctx.session.send_resource_updated(uri)
        return types.EmptyResult()

    async def unsubscribe(
        self, _ctx: _Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Stop notifying the client."""
        uri = str(params.uri)
        if self._subscribers.pop(uri, None):
            self._unwatch(uri)
        return types.EmptyResult()

    async def listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Notify the client of the changes of screens until the request ends."""
        wanted = params.notifications.resource_subscriptions or ()
        uris = [uri for uri in wanted if uri.startswith(_PREFIX)]
        for uri in uris:
            self._watch(uri)
        try:
            return await self._listen(ctx, params)
        finally:
            for uri in uris:
                self._unwatch(uri)

    async def _find(self, uri: str) -> Pane:
        if not uri.startswith(_PREFIX):
            raise MCPError(
                types.INVALID_PARAMS,
                f"There is no resource '{uri[:80]}'. Screens are {_PREFIX}NAME.",
            )
        name = _session_of(uri)
        try:
            return await self._terminal.find(name)
        except ToolError as error:
            text = error.text_for(TOOLSET.sentences, {"session": name})
            raise MCPError(types.INVALID_PARAMS, text) from error

    def _watch(self, uri: str) -> None:
        self._interest[uri] += 1
        if uri not in self._watches:
            self._watches[uri] = scope = anyio.CancelScope()
            self._engine.tasks.start_soon(self._serve, uri, scope)

    def _unwatch(self, uri: str) -> None:
        self._interest[uri] -= 1
        if not self._interest[uri]:
            del self._interest[uri]
            self._watches.pop(uri).cancel()

    async def _serve(self, uri: str, scope: anyio.CancelScope) -> None:
        """Notify of the changes of a session, and of its successors', until cancelled."""
        name = _session_of(uri)
        followed: Pane | None = None
        with scope:
            while True:
                try:
                    pane = await self._engine.find(name)
                except ToolError:
                    pane = None
                if pane is None or pane is followed:
                    await anyio.sleep(_SUCCESSOR_S)
                    continue
                if followed:
                    await self._notify(uri)
                followed = pane
                await self._follow(uri, pane)

    async def _follow(self, uri: str, pane: Pane) -> None:
        """Notify of a pane's changes until it ends."""
        before = _version(pane)
        async with pane.subscribe() as subscription:
            while not await pane.ending():
                await subscription.wait(math.inf)
                now = _version(pane)
                if now != before:
                    before = now
                    await self._notify(uri)
                    await anyio.sleep(_NOTIFY_S)
            if _version(pane) != before:
                await self._notify(uri)

    async def _notify(self, uri: str) -> None:
        await self._bus.publish(ResourceUpdated(uri=uri))
        notify = self._subscribers.get(uri)
        if notify:
            await notify()


def _version(pane: Pane) -> tuple[int, int, int]:
    """Return what changes whenever the screen may."""
    return pane.log.size, pane.log.columns, pane.log.rows


def _uri(session: str) -> str:
    return _PREFIX + quote(session, safe="")


def _session_of(uri: str) -> str:
    return unquote(uri.removeprefix(_PREFIX))
