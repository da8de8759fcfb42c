// Which lines have which of the ten heat colours: a pure function of the server's answer.
import type { Heat } from './protocol';

/** The number of colours. */
export const LEVELS = 10;

/** For each level the lines of it, zero-based; nothing if the answer is of another text than `version`. */
export function linesByLevel(heat: Heat, version: number): number[][] | undefined {
  if (heat.version !== undefined && heat.version !== version) {
    return undefined;
  }
  const lines: number[][] = Array.from({ length: LEVELS }, () => []);
  for (const { line, level } of heat.lines) {
    lines[level]?.push(line);
  }
  return lines;
}
