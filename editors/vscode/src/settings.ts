// The settings that the server gets: only those that the user has set, since a default sent from here would win over
// the workspace's heatline.toml.
import { workspace } from 'vscode';

/** Values of settings by their key within the section, such as `hints.threshold`. */
export type Settings = Record<string, unknown>;

/** What `inspect` tells of one setting, as far as it matters. */
export interface Inspected {
  globalValue?: unknown;
  workspaceValue?: unknown;
  workspaceFolderValue?: unknown;
}

/** Keys that are for the extension and not for the server. */
const OWN = ['server.path', 'trace.server'];

/** The keys of the server's settings among all that the extension declares. */
export function serverKeys(declared: readonly string[]): string[] {
  return declared
    .filter((key) => key.startsWith('heatline.'))
    .map((key) => key.slice('heatline.'.length))
    .filter((key) => !OWN.includes(key));
}

/** The explicitly set values as a nested object: `{"hints": {"threshold": 1}}`. */
export function explicitSettings(keys: readonly string[], inspect: (key: string) => Inspected | undefined): Settings {
  const root: Settings = {};
  for (const key of keys) {
    const found = inspect(key);
    const value = found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
    if (value !== undefined) {
      put(root, key.split('.'), value);
    }
  }
  return root;
}

function put(target: Settings, steps: string[], value: unknown): void {
  const [step, ...rest] = steps;
  if (step === undefined) {
    return;
  }
  if (rest.length === 0) {
    target[step] = value;
    return;
  }
  const inner = (target[step] ?? {}) as Settings;
  target[step] = inner;
  put(inner, rest, value);
}

/** What the editor's configuration holds for the server now. */
export function readSettings(declared: readonly string[]): Settings {
  const configuration = workspace.getConfiguration('heatline');
  return explicitSettings(serverKeys(declared), (key) => configuration.inspect(key));
}
