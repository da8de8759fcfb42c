// The words of the status item: a pure function of the server's status.
import type { Problem, Status } from './protocol';

/** What the status item shows. */
export interface StatusText {
  text: string;
  /** Markdown. */
  tooltip: string;
  warning: boolean;
}

/** At most so many problems stand in the tooltip. */
const PROBLEMS = 5;

/** The status item for `status`; without a server, `undefined`. */
export function statusText(status: Status | undefined, annotationsShown: boolean): StatusText {
  if (status === undefined) {
    return { text: '$(flame) Heatline: no server', tooltip: 'The Heatline server is not running.', warning: true };
  }
  return {
    text: [icon(status, annotationsShown), label(status)].join(' '),
    tooltip: tooltip(status, annotationsShown),
    warning: status.state === 'failed',
  };
}

function icon(status: Status, annotationsShown: boolean): string {
  if (status.state === 'loading') {
    return '$(loading~spin)';
  }
  return annotationsShown ? '$(flame)' : '$(eye-closed)';
}

function label(status: Status): string {
  if (status.profile == null) {
    return status.state === 'loading' ? 'loading' : status.state === 'failed' ? 'failed' : 'no profile';
  }
  const parts = [fileName(status.profile.path)];
  if (status.metric != null) {
    parts.push(status.metric);
  }
  if (status.coverage != null) {
    parts.push(status.coverage.text);
  }
  if (status.placementText != null) {
    parts.push('source changed');
  }
  if (status.problems.some(({ kind }) => kind === 'older-build')) {
    parts.push('older build');
  }
  return parts.join(' · ');
}

function tooltip(status: Status, annotationsShown: boolean): string {
  const lines: string[] = [];
  if (status.profile != null) {
    lines.push(`**${escape(fileName(status.profile.path))}** (${escape(status.profile.kind)})`, escape(status.profile.path));
  }
  if (status.message !== '') {
    lines.push(escape(status.message));
  }
  if (status.metric != null) {
    lines.push(`Metric: ${escape(status.metric)}`);
  }
  if (status.coverage != null) {
    lines.push(`Coverage: ${escape(status.coverage.sentence)}`, ...(status.coverage.gaps ?? []).map(escape));
  }
  lines.push(...(status.profile?.recording ?? []).map(escape));
  if (status.baseline !== null) {
    lines.push(`Baseline: ${escape(status.baseline)}`);
  }
  if (!annotationsShown) {
    lines.push('Annotations are switched off.');
  }
  lines.push(...problems(status.problems), 'Click for what can be done.');
  return lines.join('\n\n');
}

function problems(all: readonly Problem[]): string[] {
  const lines = all.slice(0, PROBLEMS).map(({ kind, count, message }) => {
    const times = count !== undefined && count > 1 ? ` (${count} times)` : '';
    return `- ${escape(message ?? kind)}${times}`;
  });
  if (all.length > PROBLEMS) {
    lines.push('- and more: see the log');
  }
  return lines.length === 0 ? [] : [lines.join('\n')];
}

/** The last part of a path of either kind. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== '') ?? path;
}

/** Text as Markdown that shows it as it is. */
export function escape(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>~]/g, '\\$&');
}
