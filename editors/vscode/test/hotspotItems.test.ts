import { expect, it } from 'vitest';
import { linesByLevel } from '../src/heatLines';
import { hotspotItems } from '../src/hotspotItems';

it('hotspots come in the order of the server, with their words and their place', () => {
  const cost = { weight: 1, percent: 1, samples: 1 };
  const location = { uri: 'file:///a%20b/tree.cpp', range: { start: { line: 4, character: 2 }, end: { line: 4, character: 9 } } };
  const rows = [
    { name: 'search', module: 'app', location, exclusive: cost, placement: 'exact' as const, text: '12.0 %' },
    { name: '__logf', module: 'libm.so.6', exclusive: cost, placement: 'unverified' as const, text: '2 samples' },
    { name: 'old', module: 'app', exclusive: cost, placement: 'gone' as const, text: 'removed · Δ −15.0 pp' },
  ];
  expect(hotspotItems(rows).map(({ label, description }) => [label, description])).toEqual([
    ['12.0 %  search', 'tree.cpp:5'],
    ['2 samples  __logf', 'libm.so.6, no source here'],
    ['removed · Δ −15.0 pp  old', 'app, not there any more'],
  ]);
});

it('heat is painted only on the text that it was answered for', () => {
  const lines = [
    { line: 3, level: 9 },
    { line: 1, level: 0 },
    { line: 2, level: 9 },
  ];
  expect(linesByLevel({ version: 7, lines }, 7)?.[9]).toEqual([3, 2]);
  expect(linesByLevel({ version: 7, lines }, 7)?.[0]).toEqual([1]);
  expect(linesByLevel({ version: 6, lines }, 7)).toBeUndefined();
  expect(linesByLevel({ lines: [{ line: 1, level: 12 }] }, 7)?.flat()).toEqual([]);
});
