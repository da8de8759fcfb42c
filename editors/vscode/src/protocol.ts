// The server's own messages and the results of its commands, as the server defines them.
//
// Numbers come with their finished text; nothing here is computed with.
import { NotificationType, RequestType, RequestType0, type Location, type Position, type TextDocumentIdentifier } from 'vscode-languageclient/node';

/** A cost: in the event's unit, as a share of the profile, in samples. */
export interface Cost {
  weight: number;
  percent: number;
  samples: number;
}

/** What can be chosen to be shown. */
export interface Metric {
  id: string;
  unit: string;
}

/** Shares of the profile's weight, between 0 and 1. */
export interface Coverage {
  line: number;
  symbol: number;
  none: number;
  /** The same in few words, for a status bar. */
  text: string;
  /** The same as a sentence. */
  sentence: string;
  /** Where a considerable share reached no line, and why. */
  gaps?: string[];
}

/** Something in the profile or its files that could not be used. */
export interface Problem {
  kind: string;
  count?: number;
  message?: string;
}

/** A file that a recorded source could be, and the pair of `sourceMap` that says so. */
export interface SourceCandidate {
  path: string;
  from: string;
  to: string;
}

/** A recorded source that could be several files here. */
export interface AmbiguousSource {
  recorded: string;
  candidates: SourceCandidate[];
}

/** The state of the server: what is shown, what could be. */
export interface Status {
  state: 'idle' | 'loading' | 'ready' | 'failed';
  message: string;
  profile?: { path: string; kind: string; samples: number; recording?: string[] } | null;
  profiles: string[];
  metric?: string | null;
  metrics: Metric[];
  coverage?: Coverage | null;
  placement?: Partial<Record<Place, number>> | null;
  /** How the sources differ from those that were built, as a sentence; absent if they do not. */
  placementText?: string | null;
  /** The costliest first. */
  ambiguous?: AmbiguousSource[];
  /** Where sources are ambiguous: the pairs of the setting, to which an answer is to be added. */
  sourceMap?: [string, string][];
  baseline: string | null;
  /** A profile to compare with that was found. */
  baselineOnOffer?: string | null;
  problems: Problem[];
}

/** A caller or callee. */
export interface Call {
  name: string;
  module: string;
  location?: Location | null;
  cost: Cost;
  /** The cost, in words. */
  text: string;
}

/** The neighbours of a place in the measured call graph. */
export interface Calls {
  callers: Call[];
  callees: Call[];
}

/** The difference to the baseline, in percentage points, with its confidence interval. */
export interface Delta {
  pp: number;
  low: number;
  high: number;
  significant: boolean;
}

/** Where a profiled line is in the text shown now. */
export type Place = 'exact' | 'moved' | 'changed' | 'gone' | 'unverified';

/** The costs of a document's lines with their colours. */
export interface Heat {
  /** The version of the text that the lines are of. */
  version?: number;
  lines: { line: number; level: number }[];
}

/** What a difference is taken for. */
export type Verdict = 'regression' | 'improvement' | 'below-threshold' | 'noise' | 'untestable';

/** The differences that belong behind the hints of a document. */
export interface Deltas {
  /** The version of the text that the lines are of. */
  version?: number;
  lines: { line: number; text: string; verdict: Verdict }[];
}

export interface HotspotsParams {
  by: 'line' | 'function';
  order: 'exclusive' | 'inclusive' | 'regression' | 'improvement';
  limit: number;
  metric?: string;
}

/** A line or function that costs. */
export interface Hotspot {
  name: string;
  module: string;
  location?: Location | null;
  exclusive: Cost;
  inclusive?: Cost;
  delta?: Delta;
  placement: Place;
  /** The cost, in words. */
  text: string;
}

export interface AdjacentHotspotParams {
  textDocument: TextDocumentIdentifier;
  position: Position;
  direction: 'next' | 'previous';
  order: 'rank' | 'document';
}

/** The hotspot found, its place among all and their number. */
export interface AdjacentHotspot {
  location: Location;
  rank: number;
  of: number;
}

export const HeatRequest = new RequestType<{ textDocument: TextDocumentIdentifier }, Heat, void>('heatline/heat');
export const DeltasRequest = new RequestType<{ textDocument: TextDocumentIdentifier }, Deltas, void>('heatline/deltas');
export const HotspotsRequest = new RequestType<HotspotsParams, { metric?: string; rows: Hotspot[] }, void>('heatline/hotspots');
export const AdjacentHotspotRequest = new RequestType<AdjacentHotspotParams, AdjacentHotspot | null, void>('heatline/adjacentHotspot');
export const StatusRequest = new RequestType0<Status, void>('heatline/status');
export const StatusNotification = new NotificationType<Status>('heatline/status');

/** The commands of the server, for `workspace/executeCommand`. */
export const ServerCommand = {
  open: 'heatline.server.open',
  close: 'heatline.server.close',
  baseline: 'heatline.server.baseline',
  freeze: 'heatline.server.freeze',
  metric: 'heatline.server.metric',
  refresh: 'heatline.server.refresh',
  calls: 'heatline.server.calls',
} as const;
