// The bundled example in the real editor: what stands there must be what `heatline report` says of the same profile.
//
// HEATLINE: the server to compare with (default: the release build); HEATLINE_VSIX: the extension (default: the packaged one).
// Screenshots are left in .cache/pictures for a person to look at.
import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Example } from './lib/example.mjs';
import * as expected from './lib/expected.mjs';

// The editor goes on showing hints of its own making for so long after an edit; what stands there then is the server's.
const EDITOR_SETTLES = 3000;

let example, window;

before(async () => {
  example = await Example.open();
  window = example.window;
  example.record('cpu-clock:u,task-clock:u', 'recordings/two.data');
});

after(() => example?.close());

test('hints and lenses stand where the report says, in its words', async () => {
  const wanted = example.wanted('tree.cpp');
  assert.ok(wanted.hints.size >= 5, 'the example has costly lines');
  assert.ok(wanted.lenses.size >= 3, 'the example has costly functions');
  await example.seeAll('tree.cpp', wanted, 'after opening');
  await window.picture('tree');
});

test('the status item names profile, metric and coverage', async () => {
  const { metric, coverage } = example.report('perf.data');
  const status = await window.until(() => window.status(), (seen) => seen.includes('perf.data'), 'the status item');
  assert.ok(status.includes(metric), status);
  assert.ok(status.includes(expected.percent(coverage.line * 100)), `${status} holds ${expected.percent(coverage.line * 100)}`);
});

test('the hover of the hottest line shows its costs', async () => {
  const { rows } = example.report('perf.data', '--by', 'line');
  const hottest = rows.find(({ file }) => file !== undefined && path.basename(file) === 'tree.cpp');
  const hover = await window.hover(hottest.line, 5);
  assert.ok(hover.includes(expected.percent(hottest.exclusive.percent)), hover);
  assert.ok(hover.includes(expected.count(hottest.exclusive.samples)), hover);
  await window.picture('hover');
  await window.page.keyboard.press('Escape');
});

test('each file of an inlined chain has its own costs', async () => {
  for (const file of ['vector.h', 'main.cpp']) {
    await example.openFile(file);
    await example.seeAll(file, example.wanted(file), 'after a change of file');
    await window.picture(file);
  }
  await example.openFile('tree.cpp');
});

test('hints move with the text while it is edited, and the server agrees', async () => {
  const wanted = example.wanted('tree.cpp');
  const edited = ['int one;', 'int two;', ...example.text('tree.cpp')];
  await window.moveTo(1);
  for (const [index, line] of edited.slice(0, 2).entries()) {
    await window.page.keyboard.type(line);
    // A busy editor loses a key now and then.
    const onNextLine = () => window.until(() => window.place(), (place) => place.line === index + 2, 'a new line', 3000);
    await window.again(() => window.page.keyboard.press('Enter'), onNextLine);
  }
  await example.seeHints(edited, expected.movedBy(wanted.hints, 2), 'hints two lines further down');
  await wait(EDITOR_SETTLES);
  await example.seeHints(edited, expected.movedBy(wanted.hints, 2), 'hints two lines further down, from the server');
  await example.seeLenses(expected.movedBy(wanted.lenses, 2), 'lenses two lines further down');
  await window.picture('edited');
  await window.command('File: Revert File');
  await example.seeAll('tree.cpp', wanted, 'after undoing');
});

test('a click on a lens lists callers and callees and goes there', async () => {
  await window.clickLens(example.wanted('tree.cpp').lenses.get(57));
  await window.choices('ask');
  await window.picture('calls');
  await window.choose('ask');
  await example.inFile('main.cpp');
  await example.openFile('tree.cpp');
});

test('annotations are switched off and on', async () => {
  const wanted = example.wanted('tree.cpp');
  await window.command('Heatline: Switch Annotations On or Off');
  await example.seeAll('tree.cpp', { hints: new Map(), lenses: new Map() }, 'while off');
  await window.picture('off');
  await window.command('Heatline: Switch Annotations On or Off');
  await example.seeAll('tree.cpp', wanted, 'when on again');
});

test('another profile is opened from the list, and another metric picked', async () => {
  await window.command('Heatline: Open a Profile…');
  await window.picture('open');
  await window.choose('Another file…');
  await window.enterPath(path.join(example.workspace, 'recordings/two.data'));
  await example.seeAll('tree.cpp', example.wanted('tree.cpp', 'recordings/two.data'), 'of another profile');
  await window.until(() => window.status(), (seen) => seen.includes('two.data'), 'the other profile in the status item');
  await window.command('Heatline: Pick a Metric…');
  await window.choices('cpu-clock', 'task-clock');
  await window.picture('metrics');
  await window.choose('task-clock');
  await example.seeAll('tree.cpp', example.wanted('tree.cpp', 'recordings/two.data', '--metric', 'task-clock'), 'of another metric');
  await window.until(() => window.status(), (seen) => seen.includes('task-clock'), 'the metric in the status item');
});

test('a closed profile leaves nothing, and opens again', async () => {
  await window.command('Heatline: Close the Profile');
  await example.seeAll('tree.cpp', { hints: new Map(), lenses: new Map() }, 'after closing');
  await window.picture('closed');
  await window.command('Heatline: Open a Profile…');
  await window.choose('perf.data');
  await example.seeAll('tree.cpp', example.wanted('tree.cpp'), 'after opening again');
});

test('a profile that is recorded anew is shown anew', async () => {
  copyFileSync(path.join(example.workspace, 'recordings/two.data'), path.join(example.workspace, 'perf.data'));
  // The metric that was picked stays, now that the profile has it.
  await example.seeAll('tree.cpp', example.wanted('tree.cpp', 'perf.data', '--metric', 'task-clock'), 'of the new recording');
});

test('a restarted server shows the same', async () => {
  await window.command('Heatline: Restart the Server');
  await example.seeAll('tree.cpp', example.wanted('tree.cpp'), 'after a restart');
});

test('settings take effect at once', async () => {
  example.set({ 'heatline.hints.threshold': 4, 'heatline.lenses.enable': false });
  const { hints } = example.wanted('tree.cpp');
  const rows = expected.hints(example.report('perf.data', '--by', 'line'), 'tree.cpp', 4);
  assert.ok(rows.size > 0 && rows.size < hints.size);
  await example.seeAll('tree.cpp', { hints: rows, lenses: new Map() }, 'above the new threshold');
  example.set({});
  await example.seeAll('tree.cpp', example.wanted('tree.cpp'), 'with the settings as before');
});

test('a server that is not there is said, with the way to the setting', async () => {
  example.set({ 'heatline.server.path': '/nowhere/heatline' });
  const message = window.page.locator('.notification-toast', { hasText: 'heatline.server.path' });
  await message.waitFor();
  await window.picture('no-server');
  await message.getByText('Open the Setting').click();
  await window.page.locator('.settings-editor', { hasText: 'heatline' }).waitFor();
  await window.picture('setting');
});

test('the editor asked nobody but itself', () => {
  assert.deepEqual(window.blocked, []);
});
