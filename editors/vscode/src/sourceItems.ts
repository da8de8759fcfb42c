// The lists from which a source file is chosen, and the setting that keeps the answer: pure functions of the status.
import type { AmbiguousSource, SourceCandidate } from './protocol';
import { fileName } from './statusText';

/** One row of the list of sources that could be several files. */
export interface SourceItem {
  label: string;
  description: string;
  detail: string;
  source: AmbiguousSource;
}

/** One row of the list of files that a source could be. */
export interface CandidateItem {
  label: string;
  description: string;
  candidate: SourceCandidate;
}

/** The rows of all ambiguous sources. */
export function sourceItems(sources: readonly AmbiguousSource[]): SourceItem[] {
  return sources.map((source) => ({
    label: `$(file) ${fileName(source.recorded)}`,
    description: source.recorded,
    detail: `could be one of ${String(source.candidates.length)} files here`,
    source,
  }));
}

/** The rows of the files that a source could be; `shorten` gives a path as people know it in this workspace. */
export function candidateItems(source: AmbiguousSource, shorten: (path: string) => string): CandidateItem[] {
  return source.candidates.map((candidate) => ({
    label: `$(file) ${shorten(candidate.path)}`,
    description: candidate.from === source.recorded ? '' : `so ${candidate.from} is ${candidate.to}`,
    candidate,
  }));
}

/** What is asked about a source. */
export function question({ recorded, candidates }: AmbiguousSource): string {
  return `Heatline: ${fileName(recorded)} could be one of ${String(candidates.length)} files here, so its costs are not shown. Which one was built?`;
}

/** The pairs of `sourceMap` with an answer, which is tried before the others. */
export function withAnswer(sourceMap: readonly [string, string][], { from, to }: SourceCandidate): [string, string][] {
  return [[from, to], ...sourceMap.filter(([recorded, here]) => recorded !== from || here !== to)];
}
