// A client made with one of the TypeScript SDKs: it starts a server, lists the tools and runs a command.
// node typescript.mjs SDK MODE SERVER; SDK is 1 or 2, MODE the protocol that version 2 speaks.

const [sdk, mode, command] = process.argv.slice(2);
const info = { name: "test", version: "1" };

async function connected() {
  if (sdk === "1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const client = new Client(info);
    await client.connect(new StdioClientTransport({ command, env: process.env }));
    return client;
  }
  const { Client } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const client = new Client(info, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport({ command, env: process.env }));
  return client;
}

const client = await connected();
const { tools } = await client.listTools();
const ran = await client.callTool({ name: "tmux_run", arguments: { command: "echo $((6 * 7))" } });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), text: ran.content[0].text }));
await client.close();
