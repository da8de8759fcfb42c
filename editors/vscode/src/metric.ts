// Picking the metric that is shown.
import { commands, window, type ExtensionContext } from 'vscode';
import { ServerCommand } from './protocol';
import type { Server } from './server';

/** Registers the command. */
export function activate(context: ExtensionContext, server: Server): void {
  context.subscriptions.push(
    commands.registerCommand('heatline.pickMetric', async () => {
      const items = (server.status?.metrics ?? []).map(({ id, unit }) => ({
        label: `${id === server.status?.metric ? '$(check)' : '$(graph)'} ${id}`,
        description: unit,
        id,
      }));
      const picked = await window.showQuickPick(items, { title: 'Pick a metric', placeHolder: 'What hints and lenses show' });
      if (picked !== undefined) {
        await server.execute(ServerCommand.metric, picked.id);
      }
    }),
  );
}
