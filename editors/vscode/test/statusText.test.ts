import { describe, expect, it } from 'vitest';
import { actionItems } from '../src/actionItems';
import { profileItems } from '../src/profileItems';
import type { Status } from '../src/protocol';
import { escape, fileName, statusText } from '../src/statusText';

const ready: Status = {
  state: 'ready',
  message: '',
  profile: { path: '/project/perf.data', kind: 'perf.data', samples: 1234 },
  profiles: ['/project/perf.data', '/project/old/perf.data'],
  metric: 'cpu-clock',
  metrics: [{ id: 'cpu-clock', unit: 'ns' }],
  coverage: { line: 0.93, symbol: 0.05, none: 0.02, text: '93.0 % on lines', sentence: '93.0 % reached a line' },
  baseline: null,
  problems: [],
};
const idle: Status = { state: 'idle', message: '', profiles: [], metrics: [], baseline: null, problems: [] };

describe('the status item', () => {
  it('names profile, metric and coverage in the words of the server', () => {
    expect(statusText(ready, true).text).toBe('$(flame) perf.data · cpu-clock · 93.0 % on lines');
    expect(statusText(ready, true).warning).toBe(false);
  });
  it('says when sources are not those that were built, in the words of the server', () => {
    const sentence = 'source changed since the build: 96.0 % of cost placed, 4.0 % on changed lines';
    const changed = { ...ready, message: `perf.data; ${sentence}`, placementText: sentence };
    expect(statusText(changed, true).text).toBe('$(flame) perf.data · cpu-clock · 93.0 % on lines · source changed');
    expect(statusText(changed, true).tooltip).toContain('source changed since the build: 96');
  });
  it('says when the program was built again since', () => {
    const message = 'app was built again since it was recorded';
    const older = { ...ready, problems: [{ kind: 'older-build', count: 1, message }] };
    expect(statusText(older, true).text).toBe('$(flame) perf.data · cpu-clock · 93.0 % on lines · older build');
    expect(statusText(older, true).tooltip).toContain(message);
  });
  it('says when annotations are off', () => {
    expect(statusText(ready, false).text).toBe('$(eye-closed) perf.data · cpu-clock · 93.0 % on lines');
    expect(statusText(ready, false).tooltip).toContain('switched off');
  });
  it('spins while loading and keeps what is still shown', () => {
    expect(statusText({ ...ready, state: 'loading' }, true).text).toBe('$(loading~spin) perf.data · cpu-clock · 93.0 % on lines');
    expect(statusText({ ...idle, state: 'loading' }, true).text).toBe('$(loading~spin) loading');
  });
  it('says when there is no profile, no server, or a failure', () => {
    expect(statusText(idle, true).text).toBe('$(flame) no profile');
    expect(statusText(undefined, true)).toMatchObject({ text: '$(flame) Heatline: no server', warning: true });
    expect(statusText({ ...idle, state: 'failed', message: 'a.data: no perf.data file' }, true)).toMatchObject({
      text: '$(flame) failed',
      warning: true,
    });
  });
  it('says how the profile was recorded', () => {
    const profile = { path: '/p/perf.data', kind: 'perf.data', samples: 1, recording: ['recorded by: perf record -g'] };
    expect(statusText({ ...ready, profile }, true).tooltip).toContain('recorded by: perf record \\-g');
  });
  it('says where the cost has no lines', () => {
    const coverage = { line: 0.5, symbol: 0.5, none: 0, text: '', sentence: '50 % reached a line', gaps: ['50 % is in liba.so'] };
    expect(statusText({ ...ready, coverage }, true).tooltip).toContain('reached a line\n\n50 % is in liba\\.so');
  });
  it('lists problems, the first few of many', () => {
    const problem = { kind: 'truncated', count: 2, message: 'record cut at 0x10' };
    expect(statusText({ ...ready, problems: [problem] }, true).tooltip).toContain('- record cut at 0x10 (2 times)');
    const many = statusText({ ...ready, problems: Array.from({ length: 9 }, () => problem) }, true).tooltip;
    expect(many.match(/record cut/g)).toHaveLength(5);
    expect(many).toContain('see the log');
  });
  it('shows paths as they are, whatever Markdown would make of them', () => {
    expect(escape('/a/__init__/*.spt')).toBe('/a/\\_\\_init\\_\\_/\\*\\.spt');
    expect(fileName('C:\\traces\\run.spt')).toBe('run.spt');
    expect(fileName('/data/uftrace.data/')).toBe('uftrace.data');
  });
});

describe('lists to pick from', () => {
  it('mark the current profile and end with the file dialog', () => {
    expect(profileItems(ready.profiles, ready.profile?.path).map(({ label }) => label)).toEqual([
      '$(check) perf.data',
      '$(file) perf.data',
      '$(folder-opened) Another file…',
    ]);
  });
  it('offer only what makes sense in this state', () => {
    const offered = (status: Status | undefined): string[] => actionItems(status, true).map(({ command }) => command);
    expect(offered(undefined)).toEqual(['heatline.restartServer', 'heatline.showLog']);
    expect(offered(idle)).toEqual(['heatline.openProfile', 'heatline.restartServer', 'heatline.showLog']);
    expect(offered(ready)).toContain('heatline.pickMetric');
    expect(offered(ready)).not.toContain('heatline.clearBaseline');
    expect(offered(ready)).not.toContain('heatline.showWaits');
    expect(offered({ ...ready, metrics: [{ id: 'off-cpu', unit: 'ns' }] })).toContain('heatline.showWaits');
    expect(offered({ ...ready, baseline: '/project/old/perf.data' })).toContain('heatline.clearBaseline');
    expect(offered(ready)).not.toContain('heatline.chooseSource');
    expect(offered({ ...ready, ambiguous: [{ recorded: '/build/a.c', candidates: [] }] })).toContain('heatline.chooseSource');
  });
});
