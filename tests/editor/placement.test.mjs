// Costs that stay on their code, in the real editor: typing above, inside and across costed lines, undo, save, rebuild.
//
// Screenshots are left in .cache/pictures for a person to look at.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, utimesSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Example } from './lib/example.mjs';
import * as expected from './lib/expected.mjs';

/** The line with most cost. */
const HOTTEST = 58;

let example, window, wanted, lines;

before(async () => {
  example = await Example.open();
  window = example.window;
  // Older than the binary, as in a folder in which somebody builds.
  for (const name of readdirSync(path.join(example.workspace, 'src'))) {
    utimesSync(example.source(name), 1, 1);
  }
  await window.command('Heatline: Read the Profile Again');
  wanted = example.wanted('tree.cpp');
  lines = example.text('tree.cpp');
  await example.seeAll('tree.cpp', wanted, 'as recorded');
});

after(() => example?.close());

/** Undoes until the text is the recorded one. */
async function undoAll() {
  await window.command('File: Revert File');
  await example.seeAll('tree.cpp', wanted, 'after undoing all');
  await window.until(() => window.status(), (seen) => !seen.includes('source changed'), 'a status of unchanged source');
}

test('typing inside a costed line marks its hint, and undo takes the mark away', async () => {
  const own = lines[HOTTEST - 1];
  await window.moveTo(HOTTEST, own.length + 1);
  await window.page.keyboard.type(';');
  const edited = lines.with(HOTTEST - 1, `${own};`);
  const marked = new Map(wanted.hints).set(HOTTEST, `~${wanted.hints.get(HOTTEST)}`);
  await example.seeHints(edited, marked, 'hints with a changed line');
  await window.until(() => window.status(), (seen) => seen.includes('source changed'), 'the change in the status item');
  const hover = await window.hover(HOTTEST, 5);
  assert.ok(hover.includes('changed, the line was edited'), hover);
  await window.picture('placement-changed');
  await window.page.keyboard.press('Escape');
  await window.focusEditor();
  await window.again(
    () => window.page.keyboard.press('Control+z'),
    () => window.until(() => window.hints(lines), (seen) => seen.get(HOTTEST) === wanted.hints.get(HOTTEST), 'the hint unmarked', 3000),
  );
  await undoAll();
});

test('lines typed above move hints and lenses at once', async () => {
  await window.moveTo(1);
  const onNextLine = () => window.until(() => window.place(), (place) => place.line === 2, 'a new line', 3000);
  await window.again(() => window.page.keyboard.press('Enter'), onNextLine);
  await example.seeHints(['', ...lines], expected.movedBy(wanted.hints, 1), 'hints a line further down');
  await example.seeLenses(expected.movedBy(wanted.lenses, 1), 'lenses a line further down');
  await undoAll();
});

test('a removed line is counted in the lens of its function', async () => {
  await window.moveTo(HOTTEST);
  await window.command('Delete Line');
  const share = wanted.hints.get(HOTTEST).split(' · ')[0];
  const removed = `${share} on removed lines`;
  const ends = (lenses) => [...lenses.values()].some((text) => text.endsWith(removed));
  await window.until(() => window.lenses(), ends, `a lens that ends with ${removed}`);
  await window.picture('placement-removed');
  await undoAll();
});

test('saved and opened again, and built again, the costs stay on their lines', async () => {
  await window.moveTo(1);
  const onNextLine = () => window.until(() => window.place(), (place) => place.line === 2, 'a new line', 3000);
  await window.again(() => window.page.keyboard.press('Enter'), onNextLine);
  await window.command('File: Save');
  const edited = ['', ...lines];
  await window.until(() => example.text('tree.cpp').length, (count) => count === edited.length, 'the text on the disk');
  await example.openFile('main.cpp');
  await window.command('View: Close All Editors');
  await example.openFile('tree.cpp');
  await example.seeHints(edited, expected.movedBy(wanted.hints, 1), 'hints of the saved file');
  await window.picture('placement-saved');
  const sources = readdirSync(path.join(example.workspace, 'src')).filter((name) => name.endsWith('.cpp'));
  const compile = ['-O0', '-o', 'neighbours', ...sources.map((name) => path.join('src', name))];
  execFileSync('g++', compile, { cwd: example.workspace, stdio: 'pipe' });
  await example.seeHints(edited, expected.movedBy(wanted.hints, 1), 'hints after a build');
  await window.until(() => window.status(), (seen) => seen.includes('older build'), 'the build in the status item');
  const told = await window.statusHover();
  assert.ok(told.includes('neighbours was built again since it was recorded'), told);
  await window.picture('placement-built');
});

test('a file that is renamed in the editor keeps its costs', async () => {
  await window.page.locator('.explorer-folders-view .monaco-list-row', { hasText: 'tree.cpp' }).first().click();
  await window.page.keyboard.press('F2');
  await window.page.locator('.explorer-folders-view input').fill('woods.cpp');
  await window.page.keyboard.press('Enter');
  await example.inFile('woods.cpp');
  await example.seeHints(['', ...lines], expected.movedBy(wanted.hints, 1), 'hints of the renamed file');
  await window.picture('placement-renamed');
});

test('a text that is too different shows costs of functions only and says why', async () => {
  const text = '// All new.\nvoid search(int depth) { use(depth); }\n';
  await window.moveTo(1);
  await window.command('Select All');
  await window.page.keyboard.insertText(text);
  const alone = (lenses) => lenses.size === 1 && lenses.has(2);
  const lenses = await window.until(() => window.lenses(), alone, 'one lens, of the function that is named');
  await window.until(() => window.hints(text.split('\n')), (seen) => seen.size === 0, 'no hints');
  const hover = await window.hover(2, 8);
  assert.ok(hover.includes(lenses.get(2)) && hover.includes('costs are shown for functions only'), hover);
  await window.until(() => window.status(), (seen) => seen.includes('source changed'), 'the change in the status item');
  const told = await window.statusHover();
  assert.ok(told.includes('costs are shown for functions only; record again'), told);
  await window.picture('placement-too-different');
});
