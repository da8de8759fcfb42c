// Differences to the baseline behind the hints. A hint has one colour, so the server leaves them out of it for this
// editor, and they are painted here: coloured where they are real, grey where they are not. The hover of the line and
// the tooltip of its hint tell the interval.
import { Range, ThemeColor, window, workspace, type DecorationOptions, type ExtensionContext, type TextDocument, type TextEditorDecorationType } from 'vscode';
import type { ClientCapabilities, StaticFeature } from 'vscode-languageclient/node';
import type { Annotations } from './annotations';
import { deltasByTone, TONES, type Painted, type Tone } from './deltaLines';
import { DeltasRequest } from './protocol';
import * as repainting from './repainting';
import type { Server } from './server';

/** Tells the server that differences are painted here. */
export const paintsDeltas: StaticFeature = {
  fillClientCapabilities: (capabilities: ClientCapabilities) => {
    const experimental = (capabilities.experimental ?? {}) as object;
    capabilities.experimental = { ...experimental, heatline: { paintsDeltas: true } };
  },
  initialize: () => undefined,
  getState: () => ({ kind: 'static' }),
  clear: () => undefined,
};

/** Paints the visible editors from now on; gives the function that paints them once more. */
export function activate(context: ExtensionContext, server: Server, annotations: Annotations): () => void {
  const types = new Map(TONES.map((tone) => [tone, decoration(tone)]));
  context.subscriptions.push(...types.values());
  return repainting.activate(context, server, ['heatline', 'editor.inlayHints'], async (editor) => {
    const { document } = editor;
    const asked = annotations.shown && showsHints(document);
    const deltas = asked ? await server.request(DeltasRequest, { textDocument: { uri: document.uri.toString() } }) : undefined;
    const painted = deltasByTone(deltas ?? { lines: [] }, document.version);
    // An answer of an older text is not for this one; the text's change has asked for the next.
    if (painted === undefined) {
      return;
    }
    for (const [tone, type] of types) {
      editor.setDecorations(type, painted[tone].map((one) => behindLine(document, one)));
    }
  });
}

/** Without its hint a difference would say nothing. */
function showsHints(document: TextDocument): boolean {
  const enabled = workspace.getConfiguration('editor.inlayHints', document).get<string>('enabled');
  return enabled === 'on' || enabled === 'onUnlessPressed';
}

function behindLine(document: TextDocument, { line, text }: Painted): DecorationOptions {
  const { end } = document.lineAt(line).range;
  return { range: new Range(end, end), renderOptions: { after: { contentText: text } } };
}

function decoration(tone: Tone): TextEditorDecorationType {
  return window.createTextEditorDecorationType({
    after: { color: new ThemeColor(`heatline.${tone}`), margin: '0 0 0 0.75em' },
  });
}
