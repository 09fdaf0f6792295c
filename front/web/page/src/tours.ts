// Guided tours: each step is a state of the page, with a text. The steps are data, in `tours`.

import bufferbloat from "../tours/bufferbloat.json";
import c2tcp from "../tours/c2tcp.json";
import lie from "../tours/lie.json";
import radio from "../tours/radio-information.json";
import rapid from "../tours/rapid.json";
import type { Build, Edit, Speed } from "./types";

export interface TourStep {
  title: string;
  text: string;
  /** A run from the beginning; otherwise the run of the step before goes on. */
  begin?: Build;
  /** A second run beside it: the same with another control in place of one. */
  beside?: { cc: string; by: string };
  /** Changes, each made when the run is at this time; in all runs, or in one of those beside each other. */
  edits?: { at_s: number; edit: Edit; run?: number }[];
  /** From where it plays on. */
  from_s: number;
  speed: Speed;
  /** Seconds that the charts show; all if missing. */
  window_s?: number;
  /** Titles of the charts to look at. */
  look: string[];
}

export interface Tour {
  name: string;
  title: string;
  about: string;
  steps: TourStep[];
}

export const TOURS = [bufferbloat, c2tcp, radio, rapid, lie] as Tour[];
