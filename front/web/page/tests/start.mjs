// The server and the browser of the tests.

import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Starts Chromium; ends the program where there is none. */
export async function startBrowser() {
  try {
    accessSync(CHROMIUM, constants.X_OK);
  } catch {
    console.log(`skipped: needs Chromium at ${CHROMIUM}, or where CHROMIUM says`);
    process.exit(process.env.RANPACE_NO_SKIP === "1" ? 1 : 0);
  }
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
}

/** Starts `ranpace lab` on a folder of another one, at a free port. */
export async function startLab(ranpace, cwd, folder) {
  const server = spawn(ranpace, ["lab", folder, "--no-open", "--listen", "127.0.0.1:0"], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  // A test that fails leaves no server behind.
  process.on("exit", () => server.kill());
  let printed = "";
  const address = await new Promise((found, failed) => {
    const read = (bytes) => {
      printed += bytes;
      const match = /http:\/\/[^\s]+/.exec(printed);
      if (match) found(match[0]);
    };
    server.stdout.on("data", read);
    server.stderr.on("data", read);
    server.on("exit", (code) => failed(new Error(`ranpace lab ended with ${code}: ${printed}`)));
  });
  return { address: address.endsWith("/") ? address : `${address}/`, process: server.pid, stop: () => server.kill(), printed: () => printed };
}

/** With LAB_DIST=1 the files of dist in place of those that the server was built with: no build of the server between two looks. */
export async function useBuilt(context) {
  if (!process.env.LAB_DIST) return;
  const dist = join(import.meta.dirname, "../dist");
  for (const name of ["page.js", "page.css"]) await context.route(`**/${name}`, (route) => route.fulfill({ path: join(dist, name) }));
}
