import { describe, expect, it, vi } from 'vitest';
import manifest from '../package.json';
import { explicitSettings, serverKeys, type Inspected } from '../src/settings';

vi.mock('vscode', () => ({ workspace: {} }));

describe('settings', () => {
  const inspect = (values: Record<string, Inspected>) => (key: string) => values[key];

  it('go to the server only where the user has set them', () => {
    const set = { 'hints.threshold': { globalValue: 2 }, 'hints.enable': {}, inline: { workspaceValue: false } };
    expect(explicitSettings(['hints.threshold', 'hints.enable', 'inline', 'metric'], inspect(set))).toEqual({
      hints: { threshold: 2 },
      inline: false,
    });
  });
  it('prefer the folder to the workspace and the workspace to the user', () => {
    const keys = ['metric'];
    expect(explicitSettings(keys, inspect({ metric: { globalValue: 'a', workspaceValue: 'b' } }))).toEqual({ metric: 'b' });
    expect(explicitSettings(keys, inspect({ metric: { workspaceValue: 'b', workspaceFolderValue: 'c' } }))).toEqual({ metric: 'c' });
  });
  it('of the extension itself stay in the editor', () => {
    const keys = serverKeys(Object.keys(manifest.contributes.configuration.properties));
    expect(keys).toContain('hints.threshold');
    expect(keys).not.toContain('server.path');
    expect(keys).not.toContain('trace.server');
  });
});

describe('the manifest', () => {
  it('declares a command for each action and no other', () => {
    const declared = manifest.contributes.commands.map(({ command }) => command);
    expect(new Set(declared).size).toBe(declared.length);
    for (const command of declared) {
      expect(command).toMatch(/^heatline\.[a-zA-Z]+$/);
    }
  });
  it('describes every setting', () => {
    for (const [key, setting] of Object.entries(manifest.contributes.configuration.properties)) {
      expect(setting.markdownDescription, key).toMatch(/\.$/);
    }
  });
});
