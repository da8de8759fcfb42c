// The item in the status bar: profile, metric and coverage; a click offers all actions.
import { commands, MarkdownString, StatusBarAlignment, ThemeColor, window, type ExtensionContext } from 'vscode';
import type { Annotations } from './annotations';
import type { Server } from './server';
import { statusText } from './statusText';

/** Shows the item; gives the function that paints it again. */
export function activate(context: ExtensionContext, server: Server, annotations: Annotations): () => void {
  const item = window.createStatusBarItem('heatline.status', StatusBarAlignment.Left, 0);
  item.name = 'Heatline';
  item.command = 'heatline.showActions';
  const paint = (): void => {
    const { status } = server;
    const shown = statusText(status, annotations.shown);
    item.text = shown.text;
    item.tooltip = new MarkdownString(shown.tooltip, true);
    item.backgroundColor = shown.warning ? new ThemeColor('statusBarItem.warningBackground') : undefined;
    void commands.executeCommand('setContext', 'heatline.profileOpen', status?.profile != null);
    void commands.executeCommand('setContext', 'heatline.baselineSet', status?.baseline != null);
  };
  context.subscriptions.push(item, server.onStatus(paint));
  paint();
  item.show();
  return paint;
}
