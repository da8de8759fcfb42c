// Sources that could be several files of the workspace, in the real editor: asked about once, the answer kept in the
// settings, so that nobody is asked again.
import assert from 'node:assert/strict';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Example, QUICKSTART } from './lib/example.mjs';

/** The bundled example with a second copy of its sources. */
const TWICE = {
  ...QUICKSTART,
  make: (folder) => {
    QUICKSTART.make(folder);
    cpSync(path.join(folder, 'src'), path.join(folder, 'other/src'), { recursive: true });
  },
};

let example, window, wanted, lines;

before(async () => {
  example = await Example.open({}, TWICE);
  window = example.window;
  wanted = example.wanted('tree.cpp');
  lines = example.text('tree.cpp');
});

after(() => example?.close());

const toasts = () => window.page.locator('.notification-toast', { hasText: 'could be one of' });

/** The workspace's settings, if there are any. */
function settings() {
  const file = path.join(example.workspace, '.vscode/settings.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}

test('one message asks which file was built, and one answer settles all sources beside it', async () => {
  await toasts().waitFor();
  assert.equal(await toasts().count(), 1, 'one message for all of them');
  await window.picture('sources-asked');
  assert.equal((await window.hints(lines)).size, 0, 'no costs on a file that may be the wrong one');
  await toasts().getByText('Choose…').click();
  const choices = await window.choices();
  assert.equal(choices.length, 2);
  assert.deepEqual(choices.map((row) => /^.*?tree[.]cpp/.exec(row)?.[0]), ['other/src/tree.cpp', 'src/tree.cpp']);
  await window.picture('sources-choices');
  await window.page.keyboard.press('ArrowDown');
  await window.page.keyboard.press('Enter');
  await example.seeHints(lines, wanted.hints, 'hints of the file that was chosen');
  assert.deepEqual(settings()['heatline.sourceMap'], [['/quickstart', example.workspace]]);
  assert.equal(await toasts().count(), 0, 'nothing is left to be asked');
});

test('opened again, nobody is asked', async () => {
  await window.page.reload();
  await window.until(() => window.hints(lines), (seen) => seen.size > 0, 'hints');
  assert.equal(await toasts().count(), 0);
});

test('whoever does not want to be asked is not asked again, and chooses by the command', async () => {
  example.set({});
  await toasts().getByText('Don’t Ask Again').click();
  await toasts().waitFor({ state: 'hidden' });
  await window.command('Heatline: Choose the File of a Source…');
  await window.choose('/quickstart/src/tree.cpp');
  await window.until(() => window.choices(), (rows) => rows.length === 2, 'the files that it could be');
  await window.page.keyboard.press('ArrowDown');
  await window.page.keyboard.press('Enter');
  await example.seeHints(lines, wanted.hints, 'hints of the file that was chosen');
  example.set({});
  await example.seeHints(lines, new Map(), 'no hints without the answer');
  await window.page.reload();
  await window.until(() => window.status(), (seen) => seen.includes('on lines'), 'the profile');
  await window.command('Heatline: Choose the File of a Source…');
  assert.ok((await window.choices()).length > 2, 'all sources are to be settled');
  assert.equal(await toasts().count(), 0);
});
