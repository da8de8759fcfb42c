// An instrumented program in the real editor: against `heatline report` of the same recording.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Example, UFTRACE } from './lib/example.mjs';
import * as expected from './lib/expected.mjs';

let example, window;

before(async () => {
  example = await Example.open({}, UFTRACE);
  window = example.window;
});

after(() => example?.close());

/** The line of the source, counted from one, that holds a text. */
function lineOf(text, from = 0) {
  return 1 + example.text('waits.c').findIndex((line, at) => at >= from && line.includes(text));
}

test('lenses have the times and calls of the report, and lines that call the time of what they call', async () => {
  const hints = expected.timedHints(example.report('uftrace.data', '--by', 'line'), 'waits.c');
  const first = lineOf('    step();');
  for (const line of [first, first + 1]) {
    hints.set(line, '2 calls here or on 1 other line');
  }
  assert.ok(hints.get(lineOf('usleep(')).startsWith('incl '), JSON.stringify([...hints]));
  const lenses = expected.timedLenses(example.report('uftrace.data'), 'waits.c');
  assert.ok(lenses.size >= 4);
  await example.seeAll('waits.c', { hints, lenses }, 'of an instrumented program');
  await window.picture('uftrace');
});

test('the hover of a line that calls has the four times', async () => {
  const hover = await window.hover(lineOf('usleep('), 6);
  assert.match(hover, /elapsed[^]*application[^]*1 call,/);
  await window.picture('uftrace-hover');
  await window.page.keyboard.press('Escape');
});

test('what waits most is a list that leads to the waiting call', async () => {
  await window.command('Heatline: Show What Waits Most…');
  const choices = await window.choices();
  assert.ok(choices[0].includes('usleep') && choices[0].includes(`waits.c:${lineOf('usleep(')}`), choices.join('\n'));
  await window.picture('uftrace-waits');
  await window.choose('usleep');
  await window.until(() => window.place(), ({ line }) => line === lineOf('usleep('), 'the line that waits');
});
