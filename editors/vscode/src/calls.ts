// Callers and callees of a function: a click on its lens lists them, choosing one goes there.
import { Range, Uri, window } from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';
import { callItems } from './callItems';
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

async function show(calls: Calls): Promise<void> {
  const items = callItems(calls);
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
  const { start } = location.range;
  const place = new Range(start.line, start.character, start.line, start.character);
  await window.showTextDocument(Uri.parse(location.uri), { selection: place });
}

function isCalls(value: unknown): value is Calls {
  return typeof value === 'object' && value !== null && 'callers' in value && 'callees' in value;
}
