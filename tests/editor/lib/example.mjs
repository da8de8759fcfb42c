// An example of the fixtures, opened in the editor, and what is to be seen of it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startEditor } from './editor.mjs';
import * as expected from './expected.mjs';
import { Window } from './page.mjs';

const top = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');
const heatline = process.env.HEATLINE ?? path.join(path.resolve(top, process.env.CARGO_TARGET_DIR ?? 'target'), 'release/heatline');
const vsix = process.env.HEATLINE_VSIX ?? path.join(top, 'editors/vscode/heatline.vsix');

/** The bundled example; `make` fills an empty folder with it, `file` is opened first, `profile` is its recording. */
export const QUICKSTART = {
  make: (folder) => { cpSync(path.join(top, 'fixtures/quickstart'), folder, { recursive: true }); },
  file: 'tree.cpp',
  profile: 'perf.data',
};

/** A program of Windows with a PDB, and samples of it in an SPT file. */
export const SPT = {
  make: (folder) => { execFileSync(path.join(top, 'fixtures/spt/make.sh'), [folder], { stdio: 'pipe' }); },
  file: 'start.cpp',
  profile: 'profile.spt',
};

/** A program for Arm, and a forged recording of it by the Statistical Profiling Extension. */
export const SPE = {
  make: (folder) => {
    const forge = ['run', '--quiet', '--locked', '-p', 'heatline-readers', '--example', 'forge_spe', '--', folder, '40000'];
    execFileSync('cargo', forge, { cwd: top, stdio: 'pipe' });
    mkdirSync(path.join(folder, 'src'));
    cpSync(path.join(top, 'fixtures/spe/program.c'), path.join(folder, 'src/program.c'));
  },
  file: 'program.c',
  profile: 'perf.data',
};

const WAITS = `#include <unistd.h>
volatile long sink;

__attribute__((noipa)) void work(long n) {
    for (long i = 0; i < n; i++)
        sink += i;
}

__attribute__((noipa)) void pause_a_moment(void) {
    usleep(30000);
}

__attribute__((noipa)) void step(void) {
    work(2000000);
}

int main(void) {
    for (int i = 0; i < 4; i++)
        work(4000000);
    pause_a_moment();
    step();
    step();
    return 0;
}
`;

/** A program that works and waits, recorded by uftrace. */
export const UFTRACE = {
  make: (folder) => {
    mkdirSync(path.join(folder, 'src'), { recursive: true });
    writeFileSync(path.join(folder, 'src/waits.c'), WAITS);
    execFileSync('gcc', ['-g', '-O1', '-fno-optimize-sibling-calls', '-pg', '-o', 'waits', 'src/waits.c'], { cwd: folder });
    execFileSync('uftrace', ['record', '-d', 'uftrace.data', './waits'], { cwd: folder, stdio: 'ignore' });
  },
  file: 'waits.c',
  profile: 'uftrace.data',
};

/** One editor on an example of its own. */
export class Example {
  /** Opens the example's first file; `settings` are the user's. */
  static async open(settings = {}, kind = QUICKSTART) {
    const example = new Example();
    example.scratch = mkdtempSync(path.join(tmpdir(), 'heatline-example-'));
    example.workspace = path.join(example.scratch, 'project');
    example.profile = kind.profile;
    try {
      kind.make(example.workspace);
      // Nothing of ours is on this PATH: the server is the one in the extension.
      example.editor = await startEditor({ vsix, settings, path: '/usr/bin:/bin' });
      example.window = await Window.open(example.editor, path.join(top, '.cache/pictures'));
      await example.window.goTo(example.editor.address(example.workspace, example.source(kind.file)));
    } catch (error) {
      await example.close();
      throw error;
    }
    return example;
  }

  async close() {
    await this.window?.close();
    await this.editor?.stop();
    rmSync(this.scratch, { recursive: true, force: true });
  }

  /** Records the example's program once more, with several events. */
  record(events, file) {
    mkdirSync(path.dirname(path.join(this.workspace, file)), { recursive: true });
    const options = ['record', '-q', '-e', events, '-F', '499', '-g', '-o', file, './neighbours'];
    execFileSync('perf', options, { cwd: this.workspace, stdio: 'ignore' });
  }

  /** Builds the example's program again from its sources as they are, in place. */
  build() {
    const sources = readdirSync(path.join(this.workspace, 'src')).filter((name) => name.endsWith('.cpp'));
    const options = ['-std=c++17', '-O2', '-g', '-fno-omit-frame-pointer', '-fno-optimize-sibling-calls', `-ffile-prefix-map=${this.workspace}=/quickstart`];
    execFileSync('g++', [...options, '-o', 'neighbours', ...sources.map((name) => this.source(name))], { cwd: this.workspace });
  }

  /** What `heatline diff` says of two profiles. */
  difference(...options) {
    return expected.difference(heatline, this.workspace, ...options);
  }

  /** Writes the settings of the workspace. */
  set(settings) {
    const folder = path.join(this.workspace, '.vscode');
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, 'settings.json'), JSON.stringify(settings));
  }

  /** The path of one of the example's sources. */
  source(name) {
    return path.join(this.workspace, 'src', name);
  }

  /** Its text as lines. */
  text(name) {
    return readFileSync(this.source(name), 'utf8').split('\n');
  }

  /** What `heatline report` says of a profile. */
  report(...options) {
    return expected.report(heatline, this.workspace, ...options);
  }

  /** What must be seen of a file, by the report on a profile. */
  wanted(file, profile = this.profile, ...options) {
    return {
      hints: expected.hints(this.report(profile, '--by', 'line', ...options), file),
      lenses: expected.lenses(this.report(profile, '--by', 'function', ...options), file),
    };
  }

  /** Opens another file by its name. */
  async openFile(name) {
    const input = await this.window.openList('Control+p');
    await input.fill(name);
    await this.window.choose(name);
    await this.inFile(name);
  }

  /** Waits until a file is the one in front. */
  async inFile(name) {
    await this.window.page.locator('.tab.active', { hasText: name }).waitFor();
  }

  async seeHints(lines, wanted, what) {
    await this.#see(() => this.window.hints(lines), wanted, what);
  }

  async seeLenses(wanted, what) {
    await this.#see(() => this.window.lenses(), wanted, what);
  }

  async seeAll(file, wanted, what) {
    await this.seeHints(this.text(file), wanted.hints, `hints of ${file} ${what}`);
    await this.seeLenses(wanted.lenses, `lenses of ${file} ${what}`);
  }

  /** Waits until what is read stands at the same lines with the same words as wanted. */
  async #see(read, wanted, what) {
    try {
      await this.window.until(read, (seen) => differences(seen, wanted).length === 0, what);
    } catch (error) {
      await this.window.picture('failed');
      const found = differences(await read(), wanted).slice(0, 6).join('\n');
      throw new assert.AssertionError({ message: `${what} are not as the report says:\n${found}\n${error.message}`, cause: error });
    }
  }
}

function differences(seen, wanted) {
  const lines = [...new Set([...seen.keys(), ...wanted.keys()])].sort((a, b) => a - b);
  return lines
    .filter((line) => seen.get(line) !== wanted.get(line))
    .map((line) => `  line ${line}: seen ${JSON.stringify(seen.get(line))}, wanted ${JSON.stringify(wanted.get(line))}`);
}
