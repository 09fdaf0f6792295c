// Requests to the server, and the binary frames that it sends: front/web/src/protocol.rs and frame.rs.

import type { Mistake, Problem } from "./types";

/** A request that the server refused, in its words. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    detail: string,
    readonly mistakes: readonly Mistake[],
  ) {
    super(detail);
  }
}

/** The answer to a request, as JSON. */
export async function ask<T>(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
  const answer = await request(method, path, body);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

export async function request(method: string, path: string, body?: unknown): Promise<Response> {
  const init: RequestInit = { method };
  if (body instanceof Blob) {
    init.body = body;
    init.headers = { "content-type": "application/octet-stream" };
  } else if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "content-type": "application/json" };
  }
  let answer: Response;
  try {
    answer = await fetch(`api/${path}`, init);
  } catch {
    throw new Refused(0, "The server does not answer. Is `ranpace lab` still running?", []);
  }
  if (!answer.ok) {
    const problem = (await answer.json().catch(() => undefined)) as Problem | undefined;
    throw new Refused(answer.status, problem?.detail ?? `The server answered ${answer.status} to ${method} ${path}.`, problem?.mistakes ?? []);
  }
  return answer;
}

export const enum FrameKind {
  Rows = 1,
  Grid = 2,
  Table = 3,
}

/** Rows of columns, as the server sends them. */
export interface Frame {
  kind: FrameKind;
  generation: number;
  /** Index of its first row. */
  first: number;
  times: Float64Array;
  columns: Float32Array[];
}

const HEADER = 32;
const MAGIC = 0x314c_5052; // "RPL1", read as a little-endian number

export function decode(bytes: ArrayBuffer): Frame {
  const view = new DataView(bytes);
  if (bytes.byteLength < HEADER || view.getUint32(0, true) !== MAGIC) throw new Error("expected a frame that begins with RPL1; are page and server of one version?");
  const [kind, generation, first, rows, columns] = [4, 8, 12, 16, 20].map((offset) => view.getUint32(offset, true)) as [number, number, number, number, number];
  const expected = HEADER + 8 * rows + 4 * rows * columns;
  if (bytes.byteLength !== expected) throw new Error(`a frame of ${rows} rows and ${columns} columns has ${expected} bytes, not ${bytes.byteLength}`);
  const at = (column: number) => HEADER + 8 * rows + 4 * rows * column;
  return {
    kind,
    generation,
    first,
    times: new Float64Array(bytes, HEADER, rows),
    columns: Array.from({ length: columns }, (_, column) => new Float32Array(bytes, at(column), rows)),
  };
}

/** Text squeezed for an address: deflate, in base64 that addresses may contain. */
export async function squeeze(text: string): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export async function expand(squeezed: string): Promise<string> {
  const binary = atob(squeezed.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  return await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
}
