// Opening, closing and reading a profile again; choosing its baseline.
import { commands, Uri, window, workspace, type ExtensionContext } from 'vscode';
import { ServerCommand, type Status } from './protocol';
import type { Server } from './server';
import { profileItems, type ProfileItem } from './profileItems';

/** Registers the commands. */
export function activate(context: ExtensionContext, server: Server): void {
  context.subscriptions.push(
    commands.registerCommand('heatline.openProfile', async (from?: unknown) => {
      const path = from instanceof Uri ? from.fsPath : await choose(server.status, 'Open a profile', server.status?.profile?.path);
      if (path !== undefined) {
        await server.execute(ServerCommand.open, path);
      }
    }),
    commands.registerCommand('heatline.closeProfile', () => server.execute(ServerCommand.close)),
    commands.registerCommand('heatline.refresh', () => server.execute(ServerCommand.refresh)),
    commands.registerCommand('heatline.setBaseline', async () => {
      const path = await choose(server.status, 'Compare with', server.status?.baseline ?? undefined);
      if (path !== undefined) {
        await server.execute(ServerCommand.baseline, path);
      }
    }),
    commands.registerCommand('heatline.clearBaseline', () => server.execute(ServerCommand.baseline, null)),
  );
}

/** One of the profiles that the server has found, or any file. */
async function choose(status: Status | undefined, title: string, current: string | undefined): Promise<string | undefined> {
  const known = status?.profiles ?? [];
  if (known.length === 0) {
    return browse(title);
  }
  const picked = await window.showQuickPick<ProfileItem>(profileItems(known, current), { title, placeHolder: 'Profiles of this workspace' });
  return picked === undefined ? undefined : (picked.path ?? (await browse(title)));
}

async function browse(title: string): Promise<string | undefined> {
  const folder = workspace.workspaceFolders?.[0]?.uri;
  const picked = await window.showOpenDialog({ title, openLabel: 'Open', ...(folder === undefined ? {} : { defaultUri: folder }) });
  return picked?.[0]?.fsPath;
}
