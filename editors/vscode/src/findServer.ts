// Where the server is: the setting, else the program inside the extension, else `PATH`.
import * as path from 'node:path';

/** What the search depends on. */
export interface Surroundings {
  /** The setting `heatline.server.path`. */
  setting: string | null;
  extensionFolder: string;
  /** The first workspace folder; a relative setting starts there. */
  workspaceFolder: string | undefined;
  platform: NodeJS.Platform;
  /** The variable `PATH`. */
  searchPath: string;
  isFile: (path: string) => boolean;
}

/** The server, or why there is none and where was looked. */
export type Found = { path: string } | { missing: string };

/** Finds the server. A setting that leads nowhere is an error: another server than the named one is never started. */
export function findServer(around: Surroundings): Found {
  const paths = around.platform === 'win32' ? path.win32 : path.posix;
  const program = around.platform === 'win32' ? 'heatline.exe' : 'heatline';
  if (around.setting !== null && around.setting !== '') {
    const named = paths.resolve(around.workspaceFolder ?? '', around.setting);
    return around.isFile(named)
      ? { path: named }
      : { missing: `The server named by the setting heatline.server.path does not exist: ${named}` };
  }
  const bundled = paths.join(around.extensionFolder, 'server', program);
  if (around.isFile(bundled)) {
    return { path: bundled };
  }
  for (const folder of around.searchPath.split(paths.delimiter)) {
    const candidate = paths.join(folder, program);
    if (folder !== '' && around.isFile(candidate)) {
      return { path: candidate };
    }
  }
  return { missing: `The Heatline server was found neither in the extension nor on PATH (${program}). Name it in the setting heatline.server.path.` };
}
