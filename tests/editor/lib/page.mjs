// What a person does and sees in the editor's window.
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { chromium } from 'playwright-core';

const PATIENCE = Number(process.env.PATIENCE ?? 30_000);

/** Text as a person reads it: no invisible characters, every kind of space a space. */
export function plain(text) {
  return text.replace(/[\u200a-\u200f\u2060\ufeff]/g, '').replace(/[\u00a0\u202f]/g, ' ').trimEnd();
}

/** A browser window on the editor. */
export class Window {
  #browser;
  #page;
  #pictures;
  #blocked = new Set();

  /** @param editor what `startEditor` gave; `pictures`: the folder for screenshots. */
  static async open(editor, pictures) {
    const window = new Window();
    window.#pictures = pictures;
    mkdirSync(pictures, { recursive: true });
    window.#browser = await chromium.launchPersistentContext(path.join(editor.folder, 'browser'), {
      env: editor.environment,
      executablePath: browserPath(),
      headless: true,
      viewport: { width: 1400, height: 1900 },
      args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    });
    await window.#browser.route('**/*', (route) => window.#onlyLoopback(route));
    window.#page = window.#browser.pages()[0] ?? (await window.#browser.newPage());
    return window;
  }

  /** Hosts that the page wanted to ask and was not let to. */
  get blocked() {
    return [...this.#blocked];
  }

  get page() {
    return this.#page;
  }

  async goTo(address) {
    await this.#page.goto(address, { waitUntil: 'domcontentloaded' });
    await this.#page.waitForSelector('.monaco-workbench', { timeout: 60_000 });
    await this.#page.waitForSelector('.monaco-editor .view-line', { timeout: 60_000 });
  }

  async close() {
    await this.#browser.close();
  }

  async picture(name) {
    await this.#page.screenshot({ path: path.join(this.#pictures, `${name}.png`) });
  }

  /** The lines in view: their number and rendered text, hints included. */
  async lines() {
    const rows = await this.#page.evaluate(() => {
      const editor = document.querySelector('.editor-group-container.active .monaco-editor') ?? document.querySelector('.monaco-editor');
      const numbers = new Map();
      for (const number of editor.querySelectorAll('.margin-view-overlays .line-numbers')) {
        numbers.set(Math.round(number.getBoundingClientRect().top), Number(number.textContent));
      }
      return [...editor.querySelectorAll('.view-lines .view-line')].map((line) => ({
        number: numbers.get(Math.round(line.getBoundingClientRect().top)),
        text: line.textContent,
      }));
    });
    return new Map(rows.filter(({ number }) => number !== undefined).map(({ number, text }) => [number, plain(text)]));
  }

  /** The hints in view by line, given the text that the lines have without them. */
  async hints(source) {
    const found = new Map();
    for (const [number, text] of await this.lines()) {
      const own = plain(source[number - 1] ?? '');
      if (text.startsWith(own) && text.trim() !== own.trim()) {
        found.set(number, text.slice(own.length).trim());
      } else if (!text.startsWith(own)) {
        found.set(number, `unexpected text: ${text}`);
      }
    }
    return found;
  }

  /** The lenses in view by the line that they stand above. */
  async lenses() {
    const rows = await this.#page.evaluate(() => {
      const editor = document.querySelector('.editor-group-container.active .monaco-editor') ?? document.querySelector('.monaco-editor');
      const numbers = [...editor.querySelectorAll('.margin-view-overlays .line-numbers')].map((number) => ({
        top: number.getBoundingClientRect().top,
        number: Number(number.textContent),
      }));
      return [...editor.querySelectorAll('.codelens-decoration')].map((lens) => {
        const { top, height } = lens.getBoundingClientRect();
        const below = numbers.filter((line) => line.top > top + height / 2).sort((a, b) => a.top - b.top)[0];
        return { number: below?.number, text: lens.textContent };
      });
    });
    return new Map(rows.map(({ number, text }) => [number, plain(text).trim()]));
  }

  /** The text of our item in the status bar. */
  async status() {
    const item = this.#page.locator('.statusbar-item[id$="heatline.status"]');
    return (await item.count()) === 0 ? '' : plain((await item.innerText()).trim());
  }

  /** What our item in the status bar tells when the mouse rests on it. */
  async statusHover() {
    const item = this.#page.locator('.statusbar-item[id$="heatline.status"]');
    const hover = this.#page.locator('.workbench-hover:visible').first();
    const rest = async () => {
      await this.#page.mouse.move(0, 0);
      await item.hover();
    };
    return plain(await this.again(rest, () => hover.innerText({ timeout: 5000 })));
  }

  /** The file in front and the line of the cursor, as the editor says it. */
  async place() {
    const position = await this.#page.locator('.statusbar-item[id$="editor.selection"]').innerText().catch(() => '');
    const tab = await this.#page.locator('.editor-group-container.active .tab.active .label-name').first().innerText().catch(() => '');
    return { file: tab.trim(), line: Number(/Ln (\d+)/.exec(position)?.[1]) };
  }

  /** The background colour of each line in view that has one of the given ones, as #rrggbbaa. */
  async backgrounds(colours) {
    const rows = await this.#page.evaluate(() => {
      const editor = document.querySelector('.editor-group-container.active .monaco-editor') ?? document.querySelector('.monaco-editor');
      const numbers = [...editor.querySelectorAll('.margin-view-overlays .line-numbers')].map((number) => ({
        top: Math.round(number.getBoundingClientRect().top),
        number: Number(number.textContent),
      }));
      return [...editor.querySelectorAll('.view-overlays .cdr')].map((overlay) => {
        const top = Math.round(overlay.getBoundingClientRect().top);
        return { number: numbers.find((line) => line.top === top)?.number, colour: getComputedStyle(overlay).backgroundColor };
      });
    });
    return new Map(rows.map(({ number, colour }) => [number, hexColour(colour)]).filter(([, colour]) => colours.includes(colour)));
  }

  /** The number of coloured pixels in the right lane of the overview ruler. */
  async rulerMarks() {
    return this.#page.evaluate(() => {
      const canvas = document.querySelector('.editor-group-container.active canvas.decorationsOverviewRuler');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let marks = 0;
      for (let at = 0; at < data.length; at += 4) {
        if (data[at] > 180 && data[at + 2] < 100 && data[at + 3] > 0) {
          marks++;
        }
      }
      return marks;
    });
  }

  /** The differences in view by line: what is painted behind the text, and its colour. */
  async deltas() {
    const rows = await this.#page.evaluate(() => {
      const editor = document.querySelector('.editor-group-container.active .monaco-editor') ?? document.querySelector('.monaco-editor');
      const numbers = new Map();
      for (const number of editor.querySelectorAll('.margin-view-overlays .line-numbers')) {
        numbers.set(Math.round(number.getBoundingClientRect().top), Number(number.textContent));
      }
      return [...editor.querySelectorAll('.view-lines .view-line')].flatMap((line) => {
        const number = numbers.get(Math.round(line.getBoundingClientRect().top));
        return [...line.querySelectorAll('span')].map((span) => {
          const { content, color } = getComputedStyle(span, '::after');
          return { number, text: content, colour: color };
        });
      });
    });
    const seen = rows.filter(({ number, text }) => number !== undefined && text.startsWith('"'));
    return new Map(seen.map(({ number, text, colour }) => [number, { text: plain(JSON.parse(text)), colour }]));
  }

  /** What is told when the mouse rests on the difference painted behind a line. */
  async hoverDelta(text) {
    const place = await this.#page.evaluate((wanted) => {
      const spans = [...document.querySelectorAll('.editor-group-container.active .view-line span')];
      const span = spans.find((one) => getComputedStyle(one, '::after').content === JSON.stringify(wanted));
      const { right, top, height } = span.getBoundingClientRect();
      return { x: right - 8, y: top + height / 2 };
    }, text);
    const hover = this.#page.locator('.monaco-editor .monaco-hover:not(.hidden) .monaco-hover-content, .monaco-resizable-hover .monaco-hover-content').first();
    const rest = async () => {
      await this.#page.mouse.move(0, 0);
      await this.#page.mouse.move(place.x, place.y, { steps: 3 });
    };
    await this.again(rest, () => hover.waitFor({ timeout: 3000 }));
    return this.until(async () => plain(await hover.innerText()), (seen) => seen !== '' && !/Loading/.test(seen), 'a hover with text');
  }

  /** The differences in view as they are seen from before `act` until after it, again and again. */
  async watchDeltas(act) {
    const seen = [await this.deltas()];
    let acting = true;
    const acted = act().finally(() => { acting = false; });
    while (acting) {
      seen.push(await this.deltas());
    }
    await acted;
    return [...seen, await this.deltas()];
  }

  /** Puts the cursor at a line and column (from 1) of the active editor. */
  async moveTo(line, column = 1) {
    await this.focusEditor();
    const input = await this.openList('Control+g');
    await input.fill(`:${line}:${column}`);
    await this.#page.keyboard.press('Enter');
    await this.#page.locator('.quick-input-widget').waitFor({ state: 'hidden', timeout: PATIENCE });
  }

  async focusEditor() {
    await this.#page.keyboard.press('Control+1');
  }

  /** The hover at a place, as text; empty if there is none. */
  async hover(line, column) {
    const hover = this.#page.locator('.monaco-editor .monaco-hover:not(.hidden) .monaco-hover-content, .monaco-resizable-hover .monaco-hover-content').first();
    const ask = async () => {
      await this.moveTo(line, column);
      await this.#page.keyboard.press('Control+k');
      await this.#page.keyboard.press('Control+i');
    };
    try {
      await this.again(ask, () => hover.waitFor({ timeout: 3000 }));
    } catch {
      return '';
    }
    return this.until(async () => plain(await hover.innerText()), (text) => text !== '' && !/Loading/.test(text), 'a hover with text');
  }

  /**
   * Runs a command by its title, through the palette, which closes when something else takes the focus; then once more.
   * Waits until the palette is gone, or its rows would be taken for those of a list that the command opens.
   */
  async command(title) {
    let input;
    const run = async () => {
      input = await this.openList('F1');
      await input.fill(`>${title}`, { timeout: 3000 });
      await this.#row(title).click({ timeout: 5000 });
    };
    await this.again(run, () => undefined);
    const palette = async () => (await input.isVisible()) && (await input.inputValue()).startsWith('>');
    await this.until(palette, (stays) => !stays, `the palette to go after ${title}`);
  }

  /** Presses the key that opens a list until it is open; gives its input. */
  async openList(key) {
    const widget = this.#page.locator('.quick-input-widget');
    if (await widget.isVisible()) {
      await this.#page.keyboard.press('Escape');
    }
    await widget.waitFor({ state: 'hidden', timeout: PATIENCE });
    const input = widget.locator('input').first();
    await this.again(() => this.#page.keyboard.press(key), () => input.waitFor({ timeout: 3000 }));
    return input;
  }

  /** The rows of the list that is open, once there are any and all these texts are among them. */
  async choices(...texts) {
    const rows = async () => {
      const seen = await this.#page.locator('.quick-input-widget:visible .quick-input-list .monaco-list-row').allInnerTexts();
      return seen.map((row) => plain(row).replace(/\s*\n\s*/g, ' ').trim());
    };
    const all = (seen) => seen.length > 0 && texts.every((text) => seen.some((row) => row.includes(text)));
    return this.until(rows, all, ['a list', ...texts].join(' with '));
  }

  /** Chooses the first row that holds the text. */
  async choose(text) {
    await this.#row(text).click({ timeout: PATIENCE });
  }

  /** Closes the list without choosing. */
  async closeList() {
    await this.#page.keyboard.press('Escape');
    await this.#page.locator('.quick-input-widget').waitFor({ state: 'hidden', timeout: PATIENCE });
  }

  /** Types a path into the file dialog that is open and accepts it. */
  async enterPath(file) {
    const widget = this.#page.locator('.quick-input-widget');
    await this.until(() => widget.locator('input').first().inputValue(), (value) => value.startsWith('/'), 'a file dialog');
    await widget.locator('input').first().fill(file);
    await this.again(() => this.#page.keyboard.press('Enter'), () => widget.waitFor({ state: 'hidden', timeout: 3000 }));
  }

  /** Clicks the lens above a line until a list opens: a lens now and then has no command until its editor has the focus. */
  async clickLens(text) {
    const lens = this.#page.locator('.editor-group-container.active .codelens-decoration a').filter({ hasText: new RegExp(text.replace(/\s/g, '\\s')) }).first();
    const click = async () => {
      await this.#page.locator('.editor-group-container.active .view-line').first().click();
      await lens.click({ timeout: 3000 });
    };
    await this.again(click, () => this.#row().waitFor({ timeout: 3000 }));
  }

  /** Does something until what it leads to is seen; a few times at most. */
  async again(act, seen) {
    for (let tries = 1; ; tries++) {
      try {
        await act();
        return await seen();
      } catch (error) {
        if (tries === 5) {
          throw error;
        }
      }
    }
  }

  #row(text) {
    const rows = this.#page.locator('.quick-input-widget:visible .quick-input-list .monaco-list-row');
    return (text === undefined ? rows : rows.filter({ hasText: text })).first();
  }

  /** Asks until the answer is as wanted; a question that fails, as while an editor is being replaced, is asked again. The last answer is in the error. */
  async until(ask, wanted, what, patience = PATIENCE) {
    const end = Date.now() + patience;
    let answer;
    let failed;
    do {
      try {
        answer = await ask();
        failed = undefined;
      } catch (error) {
        failed = error;
      }
      if (failed === undefined && wanted(answer)) {
        return answer;
      }
      await wait(100);
    } while (Date.now() < end);
    throw new Error(`waited in vain for ${what}; last seen: ${show(answer)}`, { cause: failed });
  }

  #onlyLoopback(route) {
    const url = new URL(route.request().url());
    if (['127.0.0.1', 'localhost'].includes(url.hostname) || ['data:', 'blob:'].includes(url.protocol)) {
      return route.continue();
    }
    this.#blocked.add(url.origin);
    return route.abort();
  }
}

/** `rgba(224, 80, 10, 0.03)` as `#e0500a08`; nothing for other transparent or opaque colours. */
function hexColour(text) {
  const numbers = /^rgba\((\d+), (\d+), (\d+), ([\d.]+)\)$/.exec(text)?.slice(1).map(Number);
  if (numbers === undefined || numbers[3] === 0) {
    return undefined;
  }
  const [red, green, blue, alpha] = numbers;
  return `#${[red, green, blue, Math.round(alpha * 255)].map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

function show(value) {
  return JSON.stringify(value instanceof Map ? [...value] : value, undefined, 1);
}

function browserPath() {
  const found = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
  if (found === undefined) {
    throw new Error('no Chromium found: apt-get install chromium');
  }
  return found;
}
