// What the editor must show, from `heatline report` of the same profile and the rules that the project documents.
import { execFileSync } from 'node:child_process';
import path from 'node:path';

/** The rows of a report. */
export function report(heatline, folder, ...options) {
  const text = execFileSync(heatline, ['report', ...options, '--format', 'json'], { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 28 });
  return JSON.parse(text);
}

/** The rows of a comparison. */
export function difference(heatline, folder, ...options) {
  const text = execFileSync(heatline, ['diff', ...options, '--format', 'json'], { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 28 });
  return JSON.parse(text);
}

/** A difference as it is shown everywhere. */
export function points(value) {
  const sign = value < 0 ? '\u2212' : '+';
  return `Δ ${sign}${percent(Math.abs(value)).replace('%', 'pp')}`;
}

/** A share as it is shown everywhere: two significant digits; from 10 on, one decimal. */
export function percent(value) {
  if (value === 0) {
    return '0.0 %';
  }
  const short = Number(value.toPrecision(2));
  const digits = short >= 10 ? 1 : Math.max(0, 1 - Math.floor(Math.log10(short)));
  return `${fixed(value, digits)} %`;
}

/** With so many digits behind the point; what lies exactly between two goes to the even one, as it does in C and Rust. */
function fixed(value, digits) {
  const scaled = value * 10 ** digits;
  const below = Math.floor(scaled);
  const isBetween = scaled - below === 0.5 && Number.isInteger(value * 2 ** (digits + 1));
  return isBetween ? ((below + (below % 2)) / 10 ** digits).toFixed(digits) : value.toFixed(digits);
}

/** A count with its thousands set apart. */
export function count(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ' ');
}

function samples(value) {
  return value === 1 ? '1 sample' : `${count(value)} samples`;
}

/** A share, or the number of samples where they are too few to be a share. */
function share(cost) {
  return cost.samples < 5 ? samples(cost.samples) : percent(cost.percent);
}

/** The hints of a source file by line. */
export function hints(lineReport, file, threshold = 0.5) {
  const found = new Map();
  for (const { line, exclusive, inclusive } of inFile(lineReport, file)) {
    if (Math.max(exclusive?.percent ?? 0, inclusive?.percent ?? 0) < threshold) {
      continue;
    }
    const parts = [];
    if (exclusive !== undefined && exclusive.samples > 0) {
      parts.push(share(exclusive));
    }
    if (inclusive !== undefined && inclusive.weight !== (exclusive?.weight ?? 0)) {
      parts.push(`incl ${share(inclusive)}`);
    }
    found.set(line, parts.join(' · '));
  }
  return found;
}

/** The lenses of a source file by the line of the function. */
export function lenses(functionReport, file, threshold = 0.1) {
  const found = new Map();
  for (const { line, exclusive, inclusive } of inFile(functionReport, file)) {
    if (Math.max(exclusive?.percent ?? 0, inclusive?.percent ?? 0) < threshold) {
      continue;
    }
    const counted = (inclusive ?? exclusive).samples;
    const shares = [
      ...(exclusive !== undefined && exclusive.samples > 0 ? [`exclusive ${percent(exclusive.percent)}`] : []),
      ...(inclusive !== undefined ? [`inclusive ${percent(inclusive.percent)}`] : []),
    ];
    found.set(line, [...(counted < 5 ? [] : shares), samples(counted)].join(' · '));
  }
  return found;
}

/** A measured time as it is shown everywhere: three digits. */
function duration(ns) {
  const [unit, divisor] = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]].find(([, least]) => ns >= least) ?? ['ns', 1];
  return `${Number((ns / divisor).toPrecision(3))} ${unit}`;
}

/** The hints of a source file of an instrumented program: shares of what was measured, however few the calls. */
export function timedHints(lineReport, file, threshold = 0.5) {
  const found = new Map();
  for (const { line, exclusive, inclusive } of inFile(lineReport, file)) {
    if (Math.max(exclusive.percent, inclusive.percent) >= threshold) {
      const parts = exclusive.samples > 0 ? [percent(exclusive.percent)] : [];
      found.set(line, [...parts, ...(inclusive.weight === exclusive.weight ? [] : [`incl ${percent(inclusive.percent)}`])].join(' · '));
    }
  }
  return found;
}

/** The lenses of a source file of an instrumented program. */
export function timedLenses(functionReport, file) {
  const rows = inFile(functionReport, file).filter(({ inclusive }) => inclusive.percent >= 0.1);
  return new Map(rows.map(({ line, elapsed, application, calls }) => [line, [
    `elapsed ${duration(elapsed.inclusive.ns)} incl`,
    `${duration(elapsed.exclusive.ns)} excl`,
    `application ${duration(application.inclusive.ns)}`,
    calls === 1 ? '1 call' : `${count(calls)} calls`,
  ].join(' · ')]));
}

/** The rows of a file by its name; recorded paths may be those of Windows. */
function inFile({ rows }, file) {
  return rows.filter((row) => row.line !== undefined && row.file !== undefined && path.win32.basename(row.file) === file);
}

/** The lines of a report whose source is in the example, hottest first, above the threshold of hints. */
export function hotspots(lineReport, threshold = 0.5) {
  return lineReport.rows.filter((row) => row.line !== undefined && row.file?.startsWith('/quickstart/') && row.exclusive?.percent >= threshold);
}

/** The same places after `count` lines were put in above them. */
export function movedBy(map, lines) {
  return new Map([...map].map(([line, text]) => [line + lines, text]));
}
