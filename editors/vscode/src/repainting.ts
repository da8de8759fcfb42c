// When what is painted in an editor is due: now, and whenever editors, their text or the server's answers change.
import { window, workspace, type Disposable, type ExtensionContext, type TextDocument, type TextDocumentChangeEvent, type TextEditor } from 'vscode';
import type { Server } from './server';

/** After the last key; the editor moves what is painted with the text until then. */
const TYPING_PAUSE_MS = 250;

/** Paints one editor. */
export type Paint = (editor: TextEditor) => Promise<void>;

/** Lets `paint` follow the visible editors; `settings` are the sections it depends on. Gives the function that paints all. */
export function activate(context: ExtensionContext, server: Server, settings: readonly string[], paint: Paint): () => void {
  const painter = new Painter(paint);
  const paintAll = (): void => { painter.paintAll(); };
  context.subscriptions.push(
    painter,
    server.onStatus(paintAll),
    server.onRepaint(paintAll),
    window.onDidChangeVisibleTextEditors(paintAll),
    workspace.onDidChangeConfiguration((change) => {
      if (settings.some((section) => change.affectsConfiguration(section))) {
        paintAll();
      }
    }),
    workspace.onDidChangeTextDocument((change) => { painter.follow(change); }),
    workspace.onDidCloseTextDocument((document) => { painter.forget(document); }),
  );
  return paintAll;
}

class Painter implements Disposable {
  readonly #waiting = new Map<TextDocument, NodeJS.Timeout>();

  constructor(private readonly paint: Paint) {}

  paintAll(): void {
    for (const editor of window.visibleTextEditors) {
      this.#paint(editor);
    }
  }

  /** Paints the editors of a document when its text has rested; at once when lines were broken or joined. */
  follow({ document, contentChanges }: TextDocumentChangeEvent): void {
    this.forget(document);
    const paint = (): void => {
      this.#waiting.delete(document);
      for (const editor of window.visibleTextEditors.filter((visible) => visible.document === document)) {
        this.#paint(editor);
      }
    };
    const moves = contentChanges.some(({ range, text }) => !range.isSingleLine || text.includes('\n'));
    this.#waiting.set(document, setTimeout(paint, moves ? 0 : TYPING_PAUSE_MS));
  }

  forget(document: TextDocument): void {
    clearTimeout(this.#waiting.get(document));
    this.#waiting.delete(document);
  }

  dispose(): void {
    for (const timer of this.#waiting.values()) {
      clearTimeout(timer);
    }
  }

  #paint(editor: TextEditor): void {
    if (editor.document.uri.scheme === 'file') {
      void this.paint(editor);
    }
  }
}
