import { describe, expect, it } from 'vitest';
import { findServer, type Surroundings } from '../src/findServer';

function check(files: string[], changes: Partial<Surroundings>): ReturnType<typeof findServer> {
  return findServer({
    setting: null,
    extensionFolder: '/ext',
    workspaceFolder: '/project',
    platform: 'linux',
    searchPath: '/usr/bin::/opt/bin',
    isFile: (path) => files.includes(path),
    ...changes,
  });
}

describe('the server is looked for', () => {
  const everywhere = ['/set/heatline', '/project/tools/heatline', '/ext/server/heatline', '/usr/bin/heatline', '/opt/bin/heatline'];

  it('where the setting says first', () => {
    expect(check(everywhere, { setting: '/set/heatline' })).toEqual({ path: '/set/heatline' });
  });
  it('relative to the workspace if the setting is relative', () => {
    expect(check(everywhere, { setting: 'tools/heatline' })).toEqual({ path: '/project/tools/heatline' });
  });
  it('nowhere else if the setting leads nowhere', () => {
    expect(check(everywhere, { setting: '/nowhere/heatline' })).toEqual({
      missing: 'The server named by the setting heatline.server.path does not exist: /nowhere/heatline',
    });
  });
  it('inside the extension next', () => {
    expect(check(everywhere, {})).toEqual({ path: '/ext/server/heatline' });
    expect(check(everywhere, { setting: '' })).toEqual({ path: '/ext/server/heatline' });
  });
  it('on PATH last, in its order', () => {
    expect(check(['/opt/bin/heatline', '/usr/bin/heatline'], {})).toEqual({ path: '/usr/bin/heatline' });
    expect(check(['/opt/bin/heatline'], {})).toEqual({ path: '/opt/bin/heatline' });
  });
  it('as an .exe on Windows', () => {
    const found = check(['C:\\tools\\heatline.exe'], { platform: 'win32', extensionFolder: 'C:\\ext', searchPath: 'C:\\windows;C:\\tools' });
    expect(found).toEqual({ path: 'C:\\tools\\heatline.exe' });
  });
  it('and where it is nowhere, the message names the setting', () => {
    const found = check([], {});
    expect('missing' in found && found.missing).toContain('heatline.server.path');
  });
});
