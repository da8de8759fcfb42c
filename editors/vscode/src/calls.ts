// Callers and callees: a click on a function's lens, or the command at the cursor or selection, lists them; choosing one goes there.
import { commands, window, type ExtensionContext, type Position } from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';
import { callItems } from './callItems';
import { jumpTo } from './jump';
import { ServerCommand, type Call, type Calls } from './protocol';

/** Takes the lens's command and shows what the server answers. */
export const middleware: Middleware = {
  executeCommand: async (command, args: unknown[], next) => {
    const result: unknown = await next(command, args);
    if (command === ServerCommand.calls && isCalls(result)) {
      await show(result);
    }
    return result;
  },
};

/** Registers the command for the line of the cursor or the lines of the selection. */
export function activate(context: ExtensionContext): void {
  context.subscriptions.push(
    commands.registerCommand('heatline.showCalls', async () => {
      const editor = window.activeTextEditor;
      if (editor !== undefined) {
        const { start, end, isEmpty } = editor.selection;
        const place = isEmpty ? plain(start) : { start: plain(start), end: plain(end) };
        // The server's command passes through the middleware above, which shows its answer.
        await commands.executeCommand(ServerCommand.calls, editor.document.uri.toString(), place);
      }
    }),
  );
}

function plain({ line, character }: Position): { line: number; character: number } {
  return { line, character };
}

async function show(calls: Calls): Promise<void> {
  const items = callItems(calls);
  if (items.length === 0) {
    void window.showInformationMessage('Heatline: nothing is known to call this, and it is not known to call anything.');
    return;
  }
  const picked = await window.showQuickPick(items, { title: 'Callers and callees', placeHolder: 'Go to…', matchOnDescription: true });
  if (picked?.call !== undefined) {
    await goTo(picked.call);
  }
}

async function goTo({ location, name }: Call): Promise<void> {
  if (location == null) {
    void window.showInformationMessage(`Heatline: the source of ${name} is not known.`);
    return;
  }
  await jumpTo(location);
}

function isCalls(value: unknown): value is Calls {
  return typeof value === 'object' && value !== null && 'callers' in value && 'callees' in value;
}
