// A run at the server, as this page knows it: its state, and its rows so far.

import { ask, decode, FrameKind, type Frame } from "./api";
import { Column } from "./columns";
import type { Action, Attach, ColumnAbout, Edit, Edited, Message, NewSession, PlayState, Session, Subject } from "./types";

const key = (of: Subject, name: string, column: string) => `${of}\n${name}\n${column}`;
const EMPTY = new Float64Array(0);

/** "again": the rows have begun anew. */
export type RunEvent = "about" | "state" | "rows" | "again" | "gone";

export class Run {
  private socket: WebSocket | undefined;
  private times = new Column();
  private columns = new Map<string, Column>();
  private order: readonly ColumnAbout[] = [];
  private gridTimes = new Column();
  private gridLanes: Column[] = [];
  private generation: number;
  /** Why the run is gone. */
  gone: string | undefined;

  private constructor(
    public session: Session,
    private readonly listener: (event: RunEvent) => void,
  ) {
    this.generation = session.state.generation;
    this.adopt(session.columns);
  }

  static async begin(request: NewSession, listener: (event: RunEvent) => void): Promise<Run> {
    const run = new Run(await ask<Session>("POST", "sessions", request), listener);
    run.open();
    return run;
  }

  /** Watches a command that runs. */
  static async attach(address: string, listener: (event: RunEvent) => void): Promise<Run> {
    const run = new Run(await ask<Session>("POST", "live", { address } satisfies Attach), listener);
    run.open();
    return run;
  }

  get state(): PlayState {
    return this.session.state;
  }

  /** Where the run is comes by the stream: the answer to a request may arrive after newer news. */
  async act(action: Action): Promise<void> {
    await ask<PlayState>("POST", `sessions/${this.session.id}/control`, action);
  }

  async edit(edit: Edit): Promise<Edited> {
    const edited = await ask<Edited>("POST", `sessions/${this.session.id}/edits`, edit);
    this.session.about = edited.about;
    this.listener("about");
    return edited;
  }

  /** Where it is now; `state` is where it was when the stream said so. */
  async look(): Promise<PlayState> {
    return (await ask<Session>("GET", `sessions/${this.session.id}`)).state;
  }

  /** Jumps to a time, and returns when the run waits there. */
  async seek(to_s: number): Promise<void> {
    await this.act({ action: "seek", to_s });
    while (this.gone === undefined) {
      if ((await this.look()).phase !== "catching_up") return;
      await new Promise((rest) => setTimeout(rest, 30));
    }
  }

  /** The scenario with all changes. */
  async text(): Promise<string> {
    const answer = await fetch(`api/sessions/${this.session.id}/scenario`);
    if (!answer.ok) throw new Error("the run is gone; begin it again");
    return answer.text();
  }

  /** Watches no longer; others may. */
  detach(): void {
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
  }

  /** Ends the run at the server. */
  end(): void {
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
    if (this.gone === undefined) void fetch(`api/sessions/${this.session.id}`, { method: "DELETE", keepalive: true }).catch(() => undefined);
    this.gone ??= "This run has ended.";
  }

  /** The times of all rows. */
  rowTimes = (): Float64Array => this.times.values();

  /** A column of the rows; all NaN if there is none of that name. */
  values(of: Subject, name: string, column: string): Float64Array {
    return this.columns.get(key(of, name, column))?.values() ?? EMPTY;
  }

  /** The latest value of a column. */
  last(of: Subject, name: string, column: string): number {
    return this.columns.get(key(of, name, column))?.last() ?? NaN;
  }

  columnsOf(of: Subject, name: string): string[] {
    return this.order.filter((column) => column.of === of && column.name === name).map((column) => column.column);
  }

  binTimes = (): Float64Array => this.gridTimes.values();

  lane(index: number): Float64Array {
    return this.gridLanes[index]?.values() ?? EMPTY;
  }

  private open(): void {
    const address = new URL(`api/sessions/${this.session.id}/stream`, location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    address.hash = "";
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (typeof data === "string") this.read(JSON.parse(data) as Message);
      else this.take(decode(data));
    };
    socket.onclose = () => {
      if (this.socket === socket) {
        this.gone ??= "The connection to the server has closed. Is `ranpace lab` still running?";
        this.listener("gone");
      }
    };
    this.socket = socket;
  }

  private read(message: Message): void {
    switch (message.type) {
      case "session":
        this.session = message;
        this.hear(message.state);
        this.adopt(message.columns);
        this.listener("about");
        break;
      case "state":
        this.hear(message);
        break;
      case "gone":
        this.gone = message.detail;
        this.listener("gone");
        break;
    }
  }

  private hear(state: PlayState): void {
    this.session.state = state;
    this.listener("state");
  }

  /** Forgets the rows of the generation before. They are shown until the first of the new one are there. */
  private beginAnew(generation: number): void {
    this.generation = generation;
    this.times = new Column();
    this.columns = new Map();
    this.adopt(this.order);
    this.gridTimes = new Column();
    this.gridLanes = [];
    this.listener("again");
  }

  /** Takes a new list of columns; rows that came before a column have no value in it. */
  private adopt(order: readonly ColumnAbout[]): void {
    this.order = order;
    for (const { of, name, column } of order) {
      const place = key(of, name, column);
      if (!this.columns.has(place)) this.columns.set(place, Column.of(new Float64Array(this.times.length).fill(NaN)));
    }
  }

  private take(frame: Frame): void {
    if (frame.generation !== this.state.generation) return;
    if (frame.generation !== this.generation) this.beginAnew(frame.generation);
    if (frame.kind === FrameKind.Rows) {
      if (frame.columns.length !== this.order.length || frame.first > this.times.length) return;
      this.times.overwrite(frame.first, frame.times);
      this.order.forEach(({ of, name, column }, index) => this.columns.get(key(of, name, column))!.overwrite(frame.first, frame.columns[index]!));
      // Columns that the run no longer has keep the length of the others.
      for (const column of this.columns.values()) {
        if (column.length < this.times.length) column.append(new Float64Array(this.times.length - column.length).fill(NaN));
      }
    } else if (frame.kind === FrameKind.Grid) {
      if (frame.first > this.gridTimes.length) return;
      this.gridTimes.overwrite(frame.first, frame.times);
      frame.columns.forEach((values, lane) => {
        const column = (this.gridLanes[lane] ??= Column.of(new Float64Array(frame.first)));
        column.overwrite(frame.first, values);
      });
    }
    this.listener("rows");
  }
}
