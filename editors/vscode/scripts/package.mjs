// Makes heatline.vsix: bundles the extension, copies the release build of the server into it if there is one, and packs.
// Usage: npm run package [-- --no-server]. A build elsewhere is found through CARGO_TARGET_DIR, as cargo finds it.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const extension = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const top = path.resolve(extension, '../..');
const program = process.platform === 'win32' ? 'heatline.exe' : 'heatline';
const built = path.join(path.resolve(top, process.env.CARGO_TARGET_DIR ?? 'target'), 'release', program);
const bundled = path.join(extension, 'server', program);

function run(command, ...args) {
  const { status, error } = spawnSync(command, args, { cwd: extension, stdio: ['ignore', 'inherit', 'inherit'] });
  if (error !== undefined || status !== 0) {
    throw new Error(`${command} ${args[0]}: ${error?.message ?? `ended with status ${status}`}`);
  }
}

const withServer = existsSync(built) && !process.argv.includes('--no-server');
rmSync(path.dirname(bundled), { recursive: true, force: true });
if (withServer) {
  mkdirSync(path.dirname(bundled));
  copyFileSync(built, bundled);
  if (process.platform === 'linux') {
    run('strip', bundled);
  }
} else {
  console.log(`no server at ${path.relative(top, built)}: the package will look for one on PATH`);
}
for (const licence of ['LICENSE-MIT', 'LICENSE-APACHE']) {
  copyFileSync(path.join(top, licence), path.join(extension, licence));
}

run(process.execPath, 'scripts/build.mjs', '--minify');
run(
  process.execPath,
  'node_modules/@vscode/vsce/vsce',
  'package',
  '--no-dependencies',
  '--skip-license',
  '--allow-missing-repository',
  ...(withServer ? ['--target', `${process.platform}-${process.arch}`] : []),
  '--out',
  'heatline.vsix',
);
