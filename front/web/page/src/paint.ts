// When charts are drawn: once per frame at most, and no longer than a part of a frame at a time, so that the page stays responsive.

const BUDGET_MS = 10;
const waiting = new Set<() => void>();
let scheduled = false;

/** Runs a job before one of the next frames; asked for twice, it runs once. */
export function paint(job: () => void): void {
  waiting.add(job);
  if (!scheduled) {
    scheduled = true;
    requestAnimationFrame(run);
  }
}

function run(): void {
  const end = performance.now() + BUDGET_MS;
  for (const job of waiting) {
    waiting.delete(job);
    job();
    if (performance.now() > end) break;
  }
  scheduled = waiting.size > 0;
  if (scheduled) requestAnimationFrame(run);
}
