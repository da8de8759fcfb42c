// Which lines show which difference in which colour: a pure function of the server's answer.
import type { Deltas, Verdict } from './protocol';

/** The colours, by what they say. */
export const TONES = ['regression', 'improvement', 'noise'] as const;

export type Tone = (typeof TONES)[number];

/** A difference behind a line, zero-based. */
export interface Painted {
  line: number;
  text: string;
}

/** Only what is real and large enough is worth a colour. */
function tone(verdict: Verdict): Tone {
  return verdict === 'regression' || verdict === 'improvement' ? verdict : 'noise';
}

/** For each colour the differences in it; nothing if the answer is of another text than `version`. */
export function deltasByTone(deltas: Deltas, version: number): Record<Tone, Painted[]> | undefined {
  if (deltas.version !== undefined && deltas.version !== version) {
    return undefined;
  }
  const painted: Record<Tone, Painted[]> = { regression: [], improvement: [], noise: [] };
  for (const { line, text, verdict } of deltas.lines) {
    painted[tone(verdict)].push({ line, text });
  }
  return painted;
}
