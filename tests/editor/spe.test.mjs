// A recording by Arm's Statistical Profiling Extension in the real editor: against `heatline report` of the same file.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Example, SPE } from './lib/example.mjs';
import * as expected from './lib/expected.mjs';

const FILE = 'program.c';

let example, window;

before(async () => {
  example = await Example.open({}, SPE);
  window = example.window;
});

after(() => example?.close());

/** A number of cycles as it is shown. */
function cycles(value) {
  return value < 10 ? expected.percent(value).replace(' %', '') : expected.count(Math.round(value));
}

/** The lenses: share, records, mean latency and the share of L1 misses, where operations have them. */
function lenses() {
  const report = example.report('perf.data', '--by', 'function');
  const found = expected.lenses(report, FILE);
  for (const { line, spe } of report.rows.filter((row) => found.has(row.line))) {
    const latency = spe.total_latency === undefined ? [] : [`mean ${cycles(spe.total_latency.mean)} cyc`];
    const misses = spe.l1d_miss === undefined ? [] : [`L1 miss ${expected.percent((100 * spe.l1d_miss.count) / spe.l1d_miss.of)}`];
    found.set(line, [found.get(line), ...latency, ...misses].join(' · '));
  }
  return found;
}

/** The hints under a metric that is a statistic: its words for each line that has one. */
function statistics(metric, words) {
  const rows = example.report('perf.data', '--by', 'line', '--metric', metric).rows;
  const shown = rows.filter(({ file, line, exclusive }) => file?.endsWith(`/${FILE}`) && line !== undefined && exclusive.percent >= 0.5);
  return new Map(shown.map(({ line, exclusive }) => [line, words(exclusive)]));
}

async function pick(metric) {
  await window.command('Heatline: Pick a Metric…');
  await window.choose(metric);
  await window.until(() => window.status(), (seen) => seen.includes(metric), `${metric} in the status item`);
}

test('lines have their share of the records, functions their mean latency and L1 misses', async () => {
  const { hints } = example.wanted(FILE);
  assert.ok(hints.size >= 8, 'there are costs');
  await example.seeHints(example.text(FILE), hints, 'hints of records');
  await example.seeLenses(lenses(), 'lenses with latency and misses');
  await window.picture('spe-lines');
});

test('the status item tells how it was recorded', async () => {
  const { profile } = example.report('perf.data');
  assert.ok(profile.settings.length >= 3, 'the recording was set up');
  const status = await window.until(() => window.status(), (seen) => seen.includes('perf.data'), 'the status item');
  assert.ok(status.includes('spe:records'), status);
  const hover = await window.until(() => window.statusHover(), (seen) => seen.includes('Arm SPE recorded with'), 'the hover of the item');
  for (const setting of profile.settings) {
    assert.ok(hover.includes(setting), `${setting} in ${hover}`);
  }
  await window.picture('spe-status');
});

test('the hover of a load has a histogram of latencies and where the data came from', async () => {
  const rows = example.report('perf.data', '--by', 'line').rows.filter(({ file, spe }) => file?.endsWith(`/${FILE}`) && spe.sources !== undefined);
  const [{ line, spe }] = rows;
  const hover = await window.hover(line, 9);
  assert.ok(hover.includes('Arm SPE') && hover.includes(expected.count(spe.records)), hover);
  assert.ok(/█/.test(hover), `a histogram in ${hover}`);
  const loads = Object.values(spe.sources).reduce((sum, part) => sum + part, 0);
  for (const [source, part] of Object.entries(spe.sources)) {
    assert.ok(hover.includes(`${source} ${expected.percent((100 * part) / loads)}`), `${source} in ${hover}`);
  }
  assert.ok(hover.includes(`${expected.count(spe.l1d_miss.count)} of ${expected.count(spe.l1d_miss.of)}`), hover);
  await window.picture('spe-hover');
  await window.page.keyboard.press('Escape');
});

test('the 95th percentile of the latency can be the metric of the hints', async () => {
  await pick('spe:total-latency-p95');
  const wanted = statistics('spe:total-latency-p95', ({ weight }) => `p95 ${cycles(weight)} cyc`);
  assert.ok(wanted.size >= 8);
  await example.seeHints(example.text(FILE), wanted, 'hints of the 95th percentile');
  await window.picture('spe-p95');
});

test('the share of L1 misses can be the metric of the hints', async () => {
  await pick('spe:l1d-miss-rate');
  const wanted = statistics('spe:l1d-miss-rate', ({ percent }) => `L1 miss ${expected.percent(percent)}`);
  assert.ok(wanted.size >= 2);
  await example.seeHints(example.text(FILE), wanted, 'hints of L1 misses');
});
