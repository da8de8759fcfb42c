// Going to a place that the server names.
import { Range, Uri, window, type TextEditor } from 'vscode';
import type { Location } from 'vscode-languageclient/node';

/** Shows the place; with `preview` the list that it is chosen from keeps the keyboard. */
export async function jumpTo({ uri, range }: Location, preview = false): Promise<TextEditor> {
  const { start } = range;
  const selection = new Range(start.line, start.character, start.line, start.character);
  return window.showTextDocument(Uri.parse(uri), { selection, preview: true, preserveFocus: preview });
}
