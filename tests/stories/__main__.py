"""Write the snapshot of what the stories cost."""

import dataclasses
from pathlib import Path

import orjson
from wire import Server

from .scripts import play, stories

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "stories.json"


def main() -> None:
    costs = {}
    for name, story in stories().items():
        server = Server(None).start()
        costs[name] = dataclasses.asdict(play(server, story))
        server.finish()
    SNAPSHOT.write_bytes(orjson.dumps(costs, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
