"""A client for shell scripts: starts a server, then answers a line with a call with what came back.

A line is the tool's name without `tmux_`, a tab and the arguments in JSON. The answer is `ok` or
`error`, the first block and the last one, each ended by a NUL. The first answer of all is the
server's process id.
"""

import json
import subprocess
import sys


def main() -> None:
    """Serve the script on standard input and output; everything ends with standard input."""
    server = subprocess.Popen(
        sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin
    assert server.stdout

    def ask(method: str, params: object) -> dict[str, object]:
        print(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
            file=server.stdin,
            flush=True,
        )
        message: dict[str, object] = json.loads(server.stdout.readline() if server.stdout else "")
        return message

    me = {"name": "script", "version": "1"}
    ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": me})
    print('{"jsonrpc":"2.0","method":"notifications/initialized"}', file=server.stdin, flush=True)
    print(server.pid, end="\0", flush=True)
    for line in sys.stdin:
        tool, arguments = line.split("\t", 1)
        result = ask("tools/call", {"name": f"tmux_{tool}", "arguments": json.loads(arguments)})[
            "result"
        ]
        assert isinstance(result, dict)
        texts = [block["text"] for block in result["content"]]
        word = "error" if result.get("isError") else "ok"
        print(word, texts[0], texts[-1], sep="\0", end="\0", flush=True)
    server.stdin.close()
    server.wait()


if __name__ == "__main__":
    main()
