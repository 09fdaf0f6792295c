// Colours that people with any colour vision can tell apart.

// Okabe and Ito, "Color Universal Design", 2008, in the order of front/lab/src/plot/palette.rs. Their black is the colour of the
// text, which is light on a dark page.
const OKABE_ITO = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/** Dashes tell series apart whose colours are shades of each other. */
export const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [8, 3, 2, 3]];

export function dark(): boolean {
  return document.documentElement.dataset["theme"] === "dark";
}

/** The colour of the series that comes `index`-th; after seven come the same colours, to be told apart by their dashes. */
export function colour(index: number): string {
  const place = index % (OKABE_ITO.length + 1);
  // Their blue is too dark for a thin line on a dark page.
  if (place === 0 && dark()) return "#3d9fdc";
  return OKABE_ITO[place] ?? (dark() ? "#f2f2f2" : "#000000");
}

export function dash(index: number): readonly number[] {
  return DASHES[Math.floor(index / (OKABE_ITO.length + 1)) % DASHES.length] ?? [];
}

/** For capacities and reference lines. */
export function grey(): string {
  return dark() ? "#a6a6a6" : "#767676";
}

/** A colour of the page's style. */
export function themed(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Cividis, at nine places: it has the same lightness for every colour vision (Nunez, Anderton and Renslow 2018).
const CIVIDIS = [
  [0, 32, 77],
  [0, 52, 110],
  [57, 72, 107],
  [87, 93, 109],
  [112, 113, 115],
  [138, 134, 120],
  [165, 156, 116],
  [195, 179, 105],
  [255, 234, 70],
] as const;

/** The colour of a share, 0 to 1, as red, green and blue. */
export function heat(share: number): [number, number, number] {
  const place = Math.min(1, Math.max(0, share)) * (CIVIDIS.length - 1);
  const below = Math.min(CIVIDIS.length - 2, Math.floor(place));
  const [a, b] = [CIVIDIS[below]!, CIVIDIS[below + 1]!];
  const part = (index: 0 | 1 | 2) => Math.round(a[index] + (b[index] - a[index]) * (place - below));
  return [part(0), part(1), part(2)];
}
