// Comparing builds while coding, in the real editor: the profile is frozen as the baseline, the program is changed, built
// over its old binary and recorded anew; the differences must be those of `heatline diff`.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Example } from './lib/example.mjs';
import * as expected from './lib/expected.mjs';

let example, window, baseline;

before(async () => {
  example = await Example.open();
  window = example.window;
  await example.seeAll('tree.cpp', example.wanted('tree.cpp'), 'before there is a baseline');
});

after(() => example?.close());

/** The colours of real differences, as the extension declares them for the editor's light theme. */
const COLOURS = { more: colour('regression'), less: colour('improvement') };

function colour(id) {
  const manifest = JSON.parse(readFileSync(new URL('../../editors/vscode/package.json', import.meta.url), 'utf8'));
  const { light } = manifest.contributes.colors.find((declared) => declared.id === `heatline.${id}`).defaults;
  return `rgb(${[1, 3, 5].map((at) => parseInt(light.slice(at, at + 2), 16)).join(', ')})`;
}

const hasDelta = (text) => text?.includes('Δ') ?? false;

/** The differences of a file's lines that have hints, by `heatline diff`, and the colours they are to have. */
function wanted(file) {
  const hints = example.wanted(file).hints;
  const { rows } = example.difference(baseline, 'perf.data', '--by', 'line');
  const found = new Map();
  for (const { file: of, line, new: [side] } of rows) {
    if (of?.endsWith(`/${file}`) && side.percent > 0 && hints.has(line)) {
      found.set(line, { text: expected.points(side.delta), colour: side.significant ? COLOURS[side.delta > 0 ? 'more' : 'less'] : 'grey' });
    }
  }
  return found;
}

/** What is seen, with one word for all that has neither of the two colours. */
const named = (deltas) => new Map([...deltas].map(([line, { text, colour }]) => [line, { text, colour: Object.values(COLOURS).includes(colour) ? colour : 'grey' }]));

/** Waits until exactly the wanted differences are seen of the lines that are in view. */
async function seeDeltas(differences, what) {
  const agree = (seen) => seen.size > 0 && [...seen].every(([line, one]) => !differences.has(line) || isDeepStrictEqual(one, differences.get(line))) && [...differences.keys()].some((line) => seen.has(line));
  return window.until(async () => named(await window.deltas()), agree, `${what}: ${JSON.stringify([...differences])}`);
}

test('the frozen profile is the baseline, and nothing differs from itself', async () => {
  await window.command('Heatline: Freeze the Profile as Baseline');
  const seen = await window.until(async () => named(await window.deltas()), (deltas) => deltas.size > 0, 'differences');
  for (const [line, delta] of seen) {
    assert.deepEqual(delta, { text: 'Δ +0.0 pp', colour: 'grey' }, `line ${line}`);
  }
  const hints = await window.hints(example.text('tree.cpp'));
  assert.ok(![...hints.values()].some(hasDelta), 'no difference is shown twice');
  const lenses = await window.until(() => window.lenses(), (found) => [...found.values()].some(hasDelta), 'lenses with differences');
  assert.ok([...lenses.values()].every((lens) => !hasDelta(lens) || lens.includes('Δ +0.0 pp (within noise)')));
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
  assert.ok([...differences.values()].some(({ colour }) => colour === COLOURS.more), 'a line got slower');
  await seeDeltas(differences, 'differences in their colours');
  const lenses = await window.until(() => window.lenses(), (seen) => [...seen.values()].some((lens) => /Δ \+/.test(lens)), 'a lens that says what got slower');
  assert.ok(lenses.size > 0);
  await window.picture('baseline-slower');
  const [slow] = [...differences].find(([, { colour }]) => colour === COLOURS.more);
  assert.match(await window.hoverDelta(differences.get(slow).text), /95 % interval \+/);
  await window.picture('baseline-interval');
  await window.page.keyboard.press('Escape');
});

test('differences stay behind their lines while somebody types', async () => {
  const lines = example.text('histogram.cpp');
  const differences = wanted('histogram.cpp');
  const [slow, delta] = [...differences].find(([, { colour }]) => colour === COLOURS.more);
  await window.moveTo(slow, lines[slow - 1].length + 1);
  const frames = await window.watchDeltas(() => window.page.keyboard.type(' // x', { delay: 40 }));
  const ofLine = frames.map((seen) => seen.get(slow)?.text);
  assert.deepEqual([...new Set(ofLine)], [delta.text], 'it is there in every frame, once and the same');
  await window.moveTo(1);
  await window.page.keyboard.press('Enter');
  const moved = new Map([...differences].map(([line, one]) => [line + 1, one]));
  await seeDeltas(moved, 'differences one line further down');
  await window.command('File: Revert File');
  await seeDeltas(differences, 'differences where they were');
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
  await window.until(() => window.deltas(), (deltas) => deltas.size === 0, 'no differences');
  assert.ok((await window.hints(example.text('histogram.cpp'))).size > 0);
});
