// Addresses within the page: `#/view?parameters`.

/** A view that is shown. */
export interface Shown {
  readonly element: HTMLElement;
  open(params: URLSearchParams): Promise<void>;
  destroy(): void;
  /** The theme has changed. */
  restyle(): void;
}

function hash(view: string, params: URLSearchParams): string {
  const text = params.toString();
  return `#/${view}${text && `?${text}`}`;
}

/** A whole address, to be shared. */
export function address(view: string, params: URLSearchParams): string {
  return new URL(hash(view, params), location.href).href;
}

const left = new Map<string, string>();

/** Writes the view's state into the address, without opening it again. */
export function note(view: string, params: URLSearchParams): void {
  left.set(view, hash(view, params));
  history.replaceState(null, "", hash(view, params));
}

/** The address that a view had last. */
export function last(view: string): string {
  return left.get(view) ?? link(view);
}

export function link(view: string, params: Record<string, string> = {}): string {
  return hash(view, new URLSearchParams(params));
}

export function here(): { view: string; params: URLSearchParams } {
  const [view = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { view: view || "play", params: new URLSearchParams(query) };
}
