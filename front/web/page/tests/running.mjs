// Commands that the Live view watches, begun as users begin them.

import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

/** A phone that downloads in an LTE cell, and another user who opens pages. */
const CELL = `
duration = "120s"

[[link]]
name = "core"
from = "server"
to = "mast"
rate = "1Gbit/s"
delay = "10ms"
duplex = true

[[cell]]
host = "mast"
preset = "lte"

[[user]]
name = "phone"
position = [300, 0]

[[user]]
name = "walker"
walk = { radius = "400m", speed = ["1m/s", "5m/s"] }

[[flow]]
name = "download"
from = "server"
to = "phone"
cc = "cubic"

[[flow]]
name = "pages"
from = "server"
to = "walker"
cc = "cubic"
workload = { kind = "web", page = "500KB", interval = "2s" }
`;

/** Ports that were free a moment ago. */
async function ports(count) {
  const servers = await Promise.all(Array.from({ length: count }, () => new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => found(server));
  })));
  const found = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))));
  return found;
}

/** A command that ends with the test; `end` waits for that. */
function begin(ranpace, folder, ...args) {
  const child = spawn(ranpace, args, { cwd: folder, stdio: "ignore" });
  const ended = new Promise((end) => child.on("exit", end));
  process.on("exit", () => child.kill());
  return { child, end: (signal = "SIGINT") => (child.kill(signal), ended) };
}

/** An emulated cell, which needs root, and the address of its status. */
export function startEmulation(ranpace, folder) {
  writeFileSync(join(folder, "cell.toml"), CELL);
  const { child, end } = begin(ranpace, folder, "emulate", "cell.toml", "--out", "emulated");
  return { address: `unix:/run/ranpace/${child.pid}/status.sock`, end };
}

/** A server of files with a download under BBR, and the address of its metrics. */
export async function startServer(ranpace, folder) {
  const [listen, metrics] = (await ports(2)).map((port) => `127.0.0.1:${port}`);
  const server = begin(ranpace, folder, "serve", ".", "--listen", listen, "--bytes", "100GB", "--metrics", metrics, "--cc", "bbr1");
  const answers = () => fetch(`http://${metrics}/show`).then(({ ok }) => ok, () => false);
  while (!(await answers())) await new Promise((wait) => setTimeout(wait, 50));
  const download = begin(ranpace, folder, "fetch", `https://${listen}/bytes/100000000000`, "--insecure");
  return { address: metrics, end: () => Promise.all([download.end("SIGKILL"), server.end("SIGKILL")]) };
}
