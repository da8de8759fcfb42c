import { describe, expect, it } from 'vitest';
import manifest from '../package.json';
import { deltasByTone, TONES } from '../src/deltaLines';

const deltas = {
  version: 7,
  lines: [
    { line: 3, text: 'Δ +3.2 pp', verdict: 'regression' as const },
    { line: 4, text: 'Δ −9.0 pp', verdict: 'improvement' as const },
    { line: 5, text: 'Δ +0.0 pp', verdict: 'noise' as const },
    { line: 6, text: 'Δ +0.31 pp', verdict: 'below-threshold' as const },
    { line: 8, text: 'Δ +40.0 pp', verdict: 'untestable' as const },
  ],
};

describe('differences to the baseline', () => {
  it('have a colour only where they are real and large enough', () => {
    const painted = deltasByTone(deltas, 7);
    expect(painted?.regression).toEqual([{ line: 3, text: 'Δ +3.2 pp' }]);
    expect(painted?.improvement).toEqual([{ line: 4, text: 'Δ −9.0 pp' }]);
    expect(painted?.noise.map(({ line }) => line)).toEqual([5, 6, 8]);
  });

  it('are of one text only', () => {
    expect(deltasByTone(deltas, 8)).toBeUndefined();
    expect(deltasByTone({ lines: [] }, 8)).toEqual({ regression: [], improvement: [], noise: [] });
  });

  it('have colours that a theme can change', () => {
    const declared = manifest.contributes.colors.map(({ id }) => id);
    expect(declared).toEqual(expect.arrayContaining(TONES.map((tone) => `heatline.${tone}`)));
  });
});
