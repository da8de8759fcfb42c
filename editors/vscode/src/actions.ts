// What a click on the status item offers: every command that makes sense now.
import { commands, window, type ExtensionContext } from 'vscode';
import { actionItems } from './actionItems';
import type { Annotations } from './annotations';
import type { Server } from './server';

/** Registers the command. */
export function activate(context: ExtensionContext, server: Server, annotations: Annotations): void {
  context.subscriptions.push(
    commands.registerCommand('heatline.showActions', async () => {
      const items = actionItems(server.status, annotations.shown);
      const picked = await window.showQuickPick(items, { title: 'Heatline' });
      if (picked !== undefined) {
        await commands.executeCommand(picked.command);
      }
    }),
  );
}
