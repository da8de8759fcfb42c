// Heat: a quiet background of costly lines and marks in the overview ruler, in ten theme colours.
import {
  OverviewRulerLane,
  Range,
  ThemeColor,
  window,
  workspace,
  type Disposable,
  type ExtensionContext,
  type TextDocument,
  type TextEditor,
  type TextEditorDecorationType,
} from 'vscode';
import type { Annotations } from './annotations';
import { LEVELS, linesByLevel } from './heatLines';
import { HeatRequest } from './protocol';
import type { Server } from './server';

/** After the last key; the editor moves the colours with the text until then. */
const TYPING_PAUSE_MS = 250;

/** Paints the visible editors now and whenever they, their text or the server's answers change; gives the function that paints. */
export function activate(context: ExtensionContext, server: Server, annotations: Annotations): () => void {
  const painter = new Painter(server, annotations);
  const paint = (): void => { painter.paintAll(); };
  context.subscriptions.push(
    painter,
    server.onStatus(paint),
    server.onRepaint(paint),
    window.onDidChangeVisibleTextEditors(paint),
    workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration('heatline.heat')) {
        paint();
      }
    }),
    workspace.onDidChangeTextDocument(({ document }) => { painter.paintSoon(document); }),
    workspace.onDidCloseTextDocument((document) => { painter.forget(document); }),
  );
  return paint;
}

class Painter implements Disposable {
  readonly #types: TextEditorDecorationType[] = Array.from({ length: LEVELS }, (_, level) => decoration(level));
  readonly #waiting = new Map<TextDocument, NodeJS.Timeout>();

  constructor(
    private readonly server: Server,
    private readonly annotations: Annotations,
  ) {}

  paintAll(): void {
    for (const editor of window.visibleTextEditors) {
      void this.#paint(editor);
    }
  }

  /** Paints the editors of a document when its text has rested. */
  paintSoon(document: TextDocument): void {
    this.forget(document);
    const paint = (): void => {
      this.#waiting.delete(document);
      for (const editor of window.visibleTextEditors.filter((visible) => visible.document === document)) {
        void this.#paint(editor);
      }
    };
    this.#waiting.set(document, setTimeout(paint, TYPING_PAUSE_MS));
  }

  forget(document: TextDocument): void {
    clearTimeout(this.#waiting.get(document));
    this.#waiting.delete(document);
  }

  dispose(): void {
    for (const timer of this.#waiting.values()) {
      clearTimeout(timer);
    }
    for (const type of this.#types) {
      type.dispose();
    }
  }

  async #paint(editor: TextEditor): Promise<void> {
    const { document } = editor;
    if (document.uri.scheme !== 'file') {
      return;
    }
    const heat = this.annotations.shown ? await this.server.request(HeatRequest, { textDocument: { uri: document.uri.toString() } }) : undefined;
    const lines = linesByLevel(heat ?? { lines: [] }, document.version);
    // An answer of an older text is not for this one; the text's change has asked for the next.
    if (lines === undefined) {
      return;
    }
    for (const [level, type] of this.#types.entries()) {
      editor.setDecorations(type, (lines[level] ?? []).map((line) => new Range(line, 0, line, 0)));
    }
  }
}

function decoration(level: number): TextEditorDecorationType {
  return window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new ThemeColor(`heatline.background${level}`),
    overviewRulerColor: new ThemeColor(`heatline.ruler${level}`),
    overviewRulerLane: OverviewRulerLane.Right,
  });
}
