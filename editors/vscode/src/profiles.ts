// Opening, closing and reading a profile again; choosing its baseline.
import { commands, Uri, window, workspace, type ExtensionContext } from 'vscode';
import { ServerCommand, type Status } from './protocol';
import type { Server } from './server';
import { profileItems, type ProfileItem } from './profileItems';

/** Registers the commands. */
export function activate(context: ExtensionContext, server: Server): void {
  context.subscriptions.push(
    commands.registerCommand('heatline.openProfile', async (from?: unknown) => {
      const path = from instanceof Uri ? from.fsPath : await choose('Open a profile', server.status?.profiles ?? [], server.status?.profile?.path);
      if (path !== undefined) {
        await server.execute(ServerCommand.open, path);
      }
    }),
    commands.registerCommand('heatline.closeProfile', () => server.execute(ServerCommand.close)),
    commands.registerCommand('heatline.refresh', () => server.execute(ServerCommand.refresh)),
    commands.registerCommand('heatline.setBaseline', async () => {
      const path = await choose('Compare with', baselines(server.status), server.status?.baseline ?? undefined);
      if (path !== undefined) {
        await server.execute(ServerCommand.baseline, path);
      }
    }),
    commands.registerCommand('heatline.freezeBaseline', () => server.execute(ServerCommand.freeze)),
    commands.registerCommand('heatline.clearBaseline', () => server.execute(ServerCommand.baseline, null)),
  );
}

/** The profiles that the shown one can be compared with; the one on offer first. */
function baselines(status: Status | undefined): string[] {
  const offered = status?.baselineOnOffer == null ? [] : [status.baselineOnOffer];
  return [...offered, ...(status?.profiles ?? []).filter((path) => path !== status?.profile?.path && !offered.includes(path))];
}

/** One of the known profiles, or any file. */
async function choose(title: string, known: readonly string[], current: string | undefined): Promise<string | undefined> {
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
