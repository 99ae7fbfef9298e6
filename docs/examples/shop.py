"""A small web shop with a bug, which pages debug.

usage: python3 shop.py serve
       python3 shop.py order URL ITEM COUNT
"""

import json
import sys
import traceback
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

_PRICES = {"tea": "3.50", "cake": "4.20"}


class Shop(BaseHTTPRequestHandler):
    """Answers an order with what it costs."""

    def do_POST(self) -> None:
        """Answer an order, with status 500 if that fails."""
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            answer = total(order)
        except Exception:  # noqa: BLE001  what a web framework does
            traceback.print_exc()
            self.send_error(500)
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"total": answer}).encode())


def total(order: dict[str, Any]) -> float:
    """Return what an order costs."""
    price: Any = _PRICES[order["item"]]
    cost: float = price * float(order["count"])
    return cost


def serve() -> None:
    """Serve on a free port until interrupted."""
    server = HTTPServer(("127.0.0.1", 0), Shop)
    print(f"shop: listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


def order(url: str, item: str, count: str) -> None:
    """Order, and print the shop's answer; exit with 22 if that is an error, as curl --fail does."""
    data = json.dumps({"item": item, "count": count}).encode()
    try:
        with urllib.request.urlopen(url, data, timeout=10) as response:  # noqa: S310  our own URL
            print(response.read().decode())
    except urllib.error.HTTPError as error:
        print(error)
        sys.exit(22)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        order(*sys.argv[2:])
