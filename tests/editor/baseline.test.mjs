// Comparing builds while coding, in the real editor: the profile is frozen as the baseline, the program is changed, built
// over its old binary and recorded anew; the differences must be those of `heatline diff`.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { Example } from './lib/example.mjs';
import * as expected from './lib/expected.mjs';

let example, window, baseline;

before(async () => {
  example = await Example.open();
  window = example.window;
  await example.seeAll('tree.cpp', example.wanted('tree.cpp'), 'before there is a baseline');
});

after(() => example?.close());

const hasDelta = (text) => text?.includes('Δ') ?? false;

/** The differences of a file's lines that have exclusive cost, by `heatline diff`, as hints show them. */
function wanted(file) {
  const { rows } = example.difference(baseline, 'perf.data', '--by', 'line');
  const found = new Map();
  for (const { file: of, line, new: [side] } of rows) {
    if (of?.endsWith(`/${file}`) && side.percent > 0) {
      found.set(line, expected.points(side.delta));
    }
  }
  return found;
}

test('the frozen profile is the baseline, and nothing differs from itself', async () => {
  await window.command('Heatline: Freeze the Profile as Baseline');
  const seen = await window.until(() => window.hints(example.text('tree.cpp')), (hints) => [...hints.values()].some(hasDelta), 'hints with differences');
  for (const [line, text] of seen) {
    assert.ok(!hasDelta(text) || text.endsWith('Δ +0.0 pp'), `line ${line}: ${text}`);
  }
  baseline = readdirSync(example.workspace).find((name) => name.endsWith('.heatline'));
  assert.ok(baseline, 'a frozen file lies beside the profile');
});

test('a program that was changed, built and recorded anew shows what got slower and what faster', async () => {
  const file = example.source('histogram.cpp');
  const slower = '    float decades = -std::log10(distance + 1e-9f);\n';
  const text = readFileSync(file, 'utf8');
  assert.ok(text.includes(slower));
  writeFileSync(file, text.replace(slower, `${slower}    for (volatile int i = 0; i < 2000; i = i + 1) {\n    }\n`));
  example.build();
  example.record('cpu-clock:u', 'perf.data');
  const functions = example.difference(baseline, 'perf.data').rows;
  const [worst] = functions.filter(({ new: [side] }) => side.delta > 0);
  assert.match(worst.function, /bin_of|Histogram::add/);
  assert.ok(worst.new[0].significant, 'what was slowed down is no noise');

  await example.openFile('histogram.cpp');
  const differences = wanted('histogram.cpp');
  assert.ok(differences.size > 0);
  const agree = (hints) => [...hints].some(([line, text]) => hasDelta(text) && differences.has(line)) && [...hints].every(([line, text]) => !differences.has(line) || text.endsWith(differences.get(line)));
  await window.until(() => window.hints(example.text('histogram.cpp')), agree, `hints with the differences ${JSON.stringify([...differences])}`);
  const lenses = await window.until(() => window.lenses(), (seen) => [...seen.values()].some((lens) => /Δ \+/.test(lens)), 'a lens that says what got slower');
  assert.ok(lenses.size > 0);
  await window.picture('baseline-slower');
});

test('regressions and improvements have lists, and the baseline is cleared', async () => {
  await window.command('Heatline: Show Regressions Against the Baseline…');
  const [first] = await window.choices();
  assert.match(first, /Δ \+/);
  assert.match(first, /bin_of|Histogram::add/);
  await window.picture('baseline-regressions');
  await window.closeList();
  await window.command('Heatline: Show Improvements Against the Baseline…');
  const [best] = await window.choices();
  assert.match(best, /Δ \u2212/);
  assert.match(best, /search/);
  await window.closeList();
  await window.command('Heatline: Clear the Baseline');
  await window.until(() => window.hints(example.text('histogram.cpp')), (hints) => hints.size > 0 && ![...hints.values()].some(hasDelta), 'hints without differences');
});
