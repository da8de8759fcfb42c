// The bundled example in the real editor: what stands there must be what `heatline report` says of the same profile.
//
// HEATLINE: the server to compare with (default: the release build); HEATLINE_VSIX: the extension (default: the packaged one).
// Screenshots are left in .cache/pictures for a person to look at.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startEditor } from './lib/editor.mjs';
import * as expected from './lib/expected.mjs';
import { Window } from './lib/page.mjs';

const top = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const heatline = process.env.HEATLINE ?? path.join(path.resolve(top, process.env.CARGO_TARGET_DIR ?? 'target'), 'release/heatline');
const vsix = process.env.HEATLINE_VSIX ?? path.join(top, 'editors/vscode/heatline.vsix');
// The editor goes on showing hints of its own making for so long after an edit; what stands there then is the server's.
const EDITOR_SETTLES = 3000;

let scratch, workspace, editor, window;

before(async () => {
  scratch = mkdtempSync(path.join(tmpdir(), 'heatline-example-'));
  workspace = path.join(scratch, 'project');
  cpSync(path.join(top, 'fixtures/quickstart'), workspace, { recursive: true });
  const recordings = path.join(workspace, 'recordings');
  mkdirSync(recordings);
  execFileSync('perf', ['record', '-q', '-e', 'cpu-clock:u,task-clock:u', '-F', '499', '-g', '-o', 'recordings/two.data', './neighbours'], {
    cwd: workspace,
    stdio: 'ignore',
  });
  editor = await startEditor({ vsix, path: '/usr/bin:/bin' });
  window = await Window.open(editor, path.join(top, '.cache/pictures'));
  await window.goTo(editor.address(workspace, source('tree.cpp')));
});

after(async () => {
  await window?.close();
  await editor?.stop();
  if (scratch !== undefined) {
    rmSync(scratch, { recursive: true, force: true });
  }
});

/** The path of one of the example's sources. */
function source(name) {
  return path.join(workspace, 'src', name);
}

function text(name) {
  return readFileSync(source(name), 'utf8').split('\n');
}

/** Waits until what is read stands at the same lines with the same words as wanted. */
async function see(read, wanted, what) {
  try {
    await window.until(read, (seen) => differences(seen, wanted).length === 0, what);
  } catch {
    await window.picture('failed');
    assert.fail(`${what} are not as the report says:\n${differences(await read(), wanted).slice(0, 6).join('\n')}`);
  }
}

function differences(seen, wanted) {
  const lines = [...new Set([...seen.keys(), ...wanted.keys()])].sort((a, b) => a - b);
  return lines
    .filter((line) => seen.get(line) !== wanted.get(line))
    .map((line) => `  line ${line}: seen ${JSON.stringify(seen.get(line))}, wanted ${JSON.stringify(wanted.get(line))}`);
}

async function seeHints(lines, wanted, what) {
  await see(() => window.hints(lines), wanted, what);
}

async function seeLenses(wanted, what) {
  await see(() => window.lenses(), wanted, what);
}

/** What must be seen of a file, by the report on a profile. */
function wantedOf(file, profile = 'perf.data', ...options) {
  const lines = expected.hints(expected.report(heatline, workspace, profile, '--by', 'line', ...options), file);
  const functions = expected.lenses(expected.report(heatline, workspace, profile, '--by', 'function', ...options), file);
  return { hints: lines, lenses: functions };
}

async function seeAll(file, wanted, what) {
  await seeHints(text(file), wanted.hints, `hints of ${file} ${what}`);
  await seeLenses(wanted.lenses, `lenses of ${file} ${what}`);
}

async function openFile(name) {
  await window.page.keyboard.press('Control+p');
  await window.page.locator('.quick-input-widget input').first().fill(name);
  await window.choose(name);
  await window.page.locator('.tab.active', { hasText: name }).waitFor();
}

test('hints and lenses stand where the report says, in its words', async () => {
  const wanted = wantedOf('tree.cpp');
  assert.ok(wanted.hints.size >= 5, 'the example has costly lines');
  assert.ok(wanted.lenses.size >= 3, 'the example has costly functions');
  await seeAll('tree.cpp', wanted, 'after opening');
  await window.picture('tree');
});

test('the status item names profile, metric and coverage', async () => {
  const { metric, coverage } = expected.report(heatline, workspace, 'perf.data');
  const status = await window.until(() => window.status(), (seen) => seen.includes('perf.data'), 'the status item');
  assert.ok(status.includes(metric), status);
  assert.ok(status.includes(expected.percent(coverage.line * 100)), `${status} holds ${expected.percent(coverage.line * 100)}`);
});

test('the hover of the hottest line shows its costs', async () => {
  const { rows } = expected.report(heatline, workspace, 'perf.data', '--by', 'line');
  const hottest = rows.find(({ file }) => file !== undefined && path.basename(file) === 'tree.cpp');
  const hover = await window.hover(hottest.line, 5);
  assert.ok(hover.includes(expected.percent(hottest.exclusive.percent)), hover);
  assert.ok(hover.includes(expected.count(hottest.exclusive.samples)), hover);
  await window.picture('hover');
  await window.page.keyboard.press('Escape');
});

test('each file of an inlined chain has its own costs', async () => {
  for (const file of ['vector.h', 'main.cpp']) {
    await openFile(file);
    await seeAll(file, wantedOf(file), 'after a change of file');
    await window.picture(file);
  }
  await openFile('tree.cpp');
});

test('hints move with the text while it is edited, and the server agrees', async () => {
  const wanted = wantedOf('tree.cpp');
  const edited = ['int one;', 'int two;', ...text('tree.cpp')];
  await window.moveTo(1);
  for (const line of edited.slice(0, 2)) {
    await window.page.keyboard.type(line);
    await window.page.keyboard.press('Enter');
  }
  await seeHints(edited, expected.movedBy(wanted.hints, 2), 'hints two lines further down');
  await wait(EDITOR_SETTLES);
  await seeHints(edited, expected.movedBy(wanted.hints, 2), 'hints two lines further down, from the server');
  await seeLenses(expected.movedBy(wanted.lenses, 2), 'lenses two lines further down');
  await window.picture('edited');
  await window.command('File: Revert File');
  await seeAll('tree.cpp', wanted, 'after undoing');
});

test('a click on a lens lists callers and callees and goes there', async () => {
  await window.focusEditor();
  await window.page.locator('.codelens-decoration a').filter({ hasText: 'exclusive' }).last().click();
  const choices = await window.choices();
  assert.ok(choices.some((row) => row.includes('ask')), choices.join('\n'));
  await window.picture('calls');
  await window.choose('ask');
  await window.page.locator('.tab.active', { hasText: 'main.cpp' }).waitFor();
  await openFile('tree.cpp');
});

test('annotations are switched off and on', async () => {
  const wanted = wantedOf('tree.cpp');
  await window.command('Heatline: Switch Annotations On or Off');
  await seeAll('tree.cpp', { hints: new Map(), lenses: new Map() }, 'while off');
  await window.picture('off');
  await window.command('Heatline: Switch Annotations On or Off');
  await seeAll('tree.cpp', wanted, 'when on again');
});

test('another profile is opened from the list, and another metric picked', async () => {
  await window.command('Heatline: Open a Profile…');
  await window.picture('open');
  await window.choose('Another file…');
  const input = window.page.locator('.quick-input-widget input').first();
  await input.fill(path.join(workspace, 'recordings/two.data'));
  await window.page.keyboard.press('Enter');
  await seeAll('tree.cpp', wantedOf('tree.cpp', 'recordings/two.data'), 'of another profile');
  await window.command('Heatline: Pick a Metric…');
  const choices = await window.choices();
  for (const metric of ['cpu-clock', 'task-clock']) {
    assert.ok(choices.some((row) => row.includes(metric)), choices.join('\n'));
  }
  await window.picture('metrics');
  await window.choose('task-clock');
  await seeAll('tree.cpp', wantedOf('tree.cpp', 'recordings/two.data', '--metric', 'task-clock'), 'of another metric');
  await window.until(() => window.status(), (seen) => seen.includes('task-clock'), 'the metric in the status item');
});

test('a closed profile leaves nothing, and opens again', async () => {
  await window.command('Heatline: Close the Profile');
  await seeAll('tree.cpp', { hints: new Map(), lenses: new Map() }, 'after closing');
  await window.picture('closed');
  await window.command('Heatline: Open a Profile…');
  await window.choose('perf.data');
  await seeAll('tree.cpp', wantedOf('tree.cpp'), 'after opening again');
});

test('a profile that is recorded anew is shown anew', async () => {
  copyFileSync(path.join(workspace, 'recordings/two.data'), path.join(workspace, 'perf.data'));
  await seeAll('tree.cpp', wantedOf('tree.cpp'), 'of the new recording');
});

test('a restarted server shows the same', async () => {
  await window.command('Heatline: Restart the Server');
  await seeAll('tree.cpp', wantedOf('tree.cpp'), 'after a restart');
});

test('a server that is not there is said, with the way to the setting', async () => {
  mkdirSync(path.join(workspace, '.vscode'));
  writeFileSync(path.join(workspace, '.vscode/settings.json'), JSON.stringify({ 'heatline.server.path': '/nowhere/heatline' }));
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
