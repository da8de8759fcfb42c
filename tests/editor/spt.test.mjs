// An SPT file over a program of Windows in the real editor: against `heatline report` of the same file.
//
// The PDB records the sources as C:\lab\src\…, which are on no machine; in the workspace they lie in src.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Example, SPT } from './lib/example.mjs';
import * as expected from './lib/expected.mjs';

let example, window;

before(async () => {
  example = await Example.open({}, SPT);
  window = example.window;
});

after(() => example?.close());

test('the sources are recorded with paths of Windows', () => {
  const files = new Set(example.report('profile.spt', '--by', 'line').rows.map(({ file }) => file).filter(Boolean));
  assert.deepEqual([...files].sort(), ['scale.cpp', 'start.cpp', 'twice.h'].map((name) => `C:\\lab\\src\\${name}`));
});

test('hints and lenses of each file stand where the report says, in its words', async () => {
  assert.ok(example.text('scale.cpp')[0].endsWith('\r'), 'one file has line ends of Windows');
  for (const file of ['start.cpp', 'scale.cpp', 'twice.h']) {
    const wanted = example.wanted(file);
    assert.ok(wanted.hints.size >= 2 && wanted.lenses.size >= 1, `${file} has costs`);
    await example.openFile(file);
    await example.seeAll(file, wanted, 'of an SPT file');
    await window.picture(`spt-${file}`);
  }
});

test('the status item names the SPT file and its event', async () => {
  const { metric } = example.report('profile.spt');
  const status = await window.until(() => window.status(), (seen) => seen.includes('profile.spt'), 'the status item');
  assert.ok(status.includes(metric), status);
});

test('the hover of the hottest line shows the costs of that event', async () => {
  const hottest = example.report('profile.spt', '--by', 'line').rows.find(({ file }) => file?.endsWith('\\twice.h'));
  const hover = await window.hover(hottest.line, 9);
  assert.ok(hover.includes(expected.percent(hottest.exclusive.percent)), hover);
  assert.ok(hover.includes(expected.count(hottest.exclusive.samples)), hover);
  await window.picture('spt-hover');
  await window.page.keyboard.press('Escape');
});

test('the hottest line is gone to from another file', async () => {
  const [hottest] = example.report('profile.spt', '--by', 'line').rows;
  await example.openFile('start.cpp');
  await window.command('Heatline: Go to the Hottest Line');
  const name = path.win32.basename(hottest.file);
  const isThere = (place) => place.file === name && place.line === hottest.line;
  await window.until(() => window.place(), isThere, `${name}:${hottest.line}`);
});

test('each event of the file is a metric of its own', async () => {
  const { metric, metrics } = example.report('profile.spt');
  const other = metrics.map(({ id }) => id).find((id) => id !== metric && id.startsWith('spt:'));
  const wanted = (file) => example.wanted(file, 'profile.spt', '--metric', other);
  assert.notDeepEqual(wanted('scale.cpp').hints, example.wanted('scale.cpp').hints, 'the events differ');
  await example.openFile('scale.cpp');
  await window.command('Heatline: Pick a Metric…');
  await window.choose(other);
  await example.seeAll('scale.cpp', wanted('scale.cpp'), `of ${other}`);
  await window.picture('spt-metric');
});
