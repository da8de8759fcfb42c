// Heat and the ways to what costs, in the real editor: against `heatline report` of the same profile.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Example } from './lib/example.mjs';
import * as expected from './lib/expected.mjs';

const manifest = JSON.parse(readFileSync(new URL('../../editors/vscode/package.json', import.meta.url), 'utf8'));

let example, window, hotspots;

before(async () => {
  example = await Example.open({ 'workbench.colorTheme': 'Default Light Modern' });
  window = example.window;
  hotspots = expected.hotspots(example.report('perf.data', '--by', 'line'));
  await example.seeHints(example.text('tree.cpp'), example.wanted('tree.cpp').hints, 'hints of tree.cpp');
});

after(() => example?.close());

/** Waits until the cursor is in the file and line of a hotspot. */
async function at({ file, line }, what) {
  const name = path.basename(file);
  await window.until(() => window.place(), (place) => place.file === name && place.line === line, `${what}: ${name}:${line}`);
}

/** The colours of a theme: by level. */
function colours(part, theme) {
  return Array.from({ length: 10 }, (_, level) => {
    const { defaults } = manifest.contributes.colors.find(({ id }) => id === `heatline.${part}${level}`);
    return defaults[theme];
  });
}

/** The levels that the lines of a file must have, by the report. */
function levels(file) {
  const rows = example.report('perf.data', '--by', 'line').rows.filter((row) => row.line !== undefined);
  const hottest = Math.max(...rows.map(({ exclusive }) => exclusive?.weight ?? 0));
  const own = rows.filter((row) => path.basename(row.file) === file);
  return new Map(own.map(({ line, exclusive }) => [line, Math.min(9, Math.floor((10 * (exclusive?.weight ?? 0)) / hottest))]));
}

async function seeHeat(file, theme) {
  const background = colours('background', theme);
  const wanted = new Map([...levels(file)].map(([line, level]) => [line, background[level]]));
  const same = (seen) => [...wanted].every(([line, colour]) => seen.get(line) === colour) && seen.size === wanted.size;
  await window.until(() => window.backgrounds(background), same, `backgrounds ${JSON.stringify([...wanted])}`);
  const marks = await window.until(() => window.rulerMarks(), (seen) => seen > 0, 'marks in the overview ruler');
  assert.ok(marks > 0);
}

test('costly lines have a background and a mark, by their heat', async () => {
  await seeHeat('tree.cpp', 'light');
  await window.picture('heat-light');
});

test('the hottest line is gone to from anywhere', async () => {
  await example.openFile('main.cpp');
  await window.command('Heatline: Go to the Hottest Line');
  await at(hotspots[0], 'the hottest line');
});

test('the next hotspot is the next colder one, over all files, and the previous the next hotter', async () => {
  assert.ok(new Set(hotspots.map(({ file }) => file)).size >= 2, 'the hotspots lie in several files');
  for (const hotspot of hotspots.slice(1)) {
    await window.page.keyboard.press('Control+k');
    await window.page.keyboard.press('.');
    await at(hotspot, 'the next hotspot');
  }
  await window.page.keyboard.press('Control+k');
  await window.page.keyboard.press(',');
  await at(hotspots.at(-2), 'the previous hotspot');
  await window.command('Heatline: Go to the Next Hotspot (Colder)');
  await at(hotspots.at(-1), 'the coldest');
  await window.command('Heatline: Go to the Next Hotspot (Colder)');
  await at(hotspots[0], 'the hottest, after the coldest');
});

test('the list of hotspots shows each place while one walks through it', async () => {
  await example.openFile('main.cpp');
  await window.moveTo(1);
  await window.command('Heatline: Show the Hottest Lines…');
  const rows = await window.choices();
  assert.ok(rows[0].includes(`${path.basename(hotspots[0].file)}:${hotspots[0].line}`), rows.join('\n'));
  await example.inFile(path.basename(hotspots[0].file));
  await window.picture('hotspots');
  await window.closeList();
  await at({ file: 'main.cpp', line: 1 }, 'back where one was');
  await window.command('Heatline: Show the Hottest Lines…');
  await window.choices();
  await window.page.keyboard.press('ArrowDown');
  await window.page.keyboard.press('Enter');
  await at(hotspots[1], 'the second hottest line');
});

test('functions have their list', async () => {
  await window.command('Heatline: Show the Hottest Functions…');
  const [first] = example.report('perf.data', '--by', 'function').rows;
  const rows = await window.choices();
  assert.ok(rows[0].includes(first.function) && rows[0].includes(expected.percent(first.exclusive.percent)), rows.join('\n'));
  await window.picture('functions');
  await window.closeList();
});

test('callers and callees are listed for the line of the cursor, and for a selection', async () => {
  await example.openFile('tree.cpp');
  await window.moveTo(49, 9);
  await window.command('Heatline: Show Callers and Callees of This Line or Selection…');
  await window.choices('select_median');
  await window.closeList();
  await window.moveTo(61);
  for (let line = 61; line < 71; line++) {
    await window.page.keyboard.press('Shift+ArrowDown');
  }
  await window.command('Heatline: Show Callers and Callees of This Line or Selection…');
  await window.choices('squared_distance', 'along', 'search');
  await window.closeList();
});

test('a dark theme has its own colours', async () => {
  example.set({ 'workbench.colorTheme': 'Default Dark Modern' });
  await seeHeat('tree.cpp', 'dark');
  await window.picture('heat-dark');
});
