// Heat: a quiet background of costly lines and marks in the overview ruler, in ten theme colours.
import { OverviewRulerLane, Range, ThemeColor, window, type ExtensionContext, type TextEditorDecorationType } from 'vscode';
import type { Annotations } from './annotations';
import { LEVELS, linesByLevel } from './heatLines';
import { HeatRequest } from './protocol';
import * as repainting from './repainting';
import type { Server } from './server';

/** Paints the visible editors from now on; gives the function that paints them once more. */
export function activate(context: ExtensionContext, server: Server, annotations: Annotations): () => void {
  const types = Array.from({ length: LEVELS }, (_, level) => decoration(level));
  context.subscriptions.push(...types);
  return repainting.activate(context, server, ['heatline.heat'], async (editor) => {
    const { document } = editor;
    const heat = annotations.shown ? await server.request(HeatRequest, { textDocument: { uri: document.uri.toString() } }) : undefined;
    const lines = linesByLevel(heat ?? { lines: [] }, document.version);
    // An answer of an older text is not for this one; the text's change has asked for the next.
    if (lines === undefined) {
      return;
    }
    for (const [level, type] of types.entries()) {
      editor.setDecorations(type, (lines[level] ?? []).map((line) => new Range(line, 0, line, 0)));
    }
  });
}

function decoration(level: number): TextEditorDecorationType {
  return window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new ThemeColor(`heatline.background${level}`),
    overviewRulerColor: new ThemeColor(`heatline.ruler${level}`),
    overviewRulerLane: OverviewRulerLane.Right,
  });
}
