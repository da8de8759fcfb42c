// Recorded sources that could be several files here: asked about once, in a message that is in nobody's way; the answer
// is kept in the setting `sourceMap`, and so is, for this workspace, that nobody wants to be asked.
import { commands, ConfigurationTarget, window, workspace, type ExtensionContext } from 'vscode';
import type { AmbiguousSource, Status } from './protocol';
import type { Server } from './server';
import { candidateItems, question, sourceItems, withAnswer } from './sourceItems';

/** Where it is kept that nobody wants to be asked. */
const SILENT = 'heatline.sources.silent';

const CHOOSE = 'Choose…';
const NEVER = 'Don’t Ask Again';

/** Asks when there is something to be asked, and registers the command. */
export function activate(context: ExtensionContext, server: Server): void {
  const asked = new Set<string>();
  // Whoever closes a message is not asked again in this session.
  let quiet = context.workspaceState.get(SILENT) === true;
  const ask = async (source: AmbiguousSource): Promise<void> => {
    asked.add(source.recorded);
    quiet = true;
    const answer = await window.showInformationMessage(question(source), CHOOSE, NEVER);
    if (answer === NEVER) {
      await context.workspaceState.update(SILENT, true);
    } else if (answer === CHOOSE && (await choose(server.status, source))) {
      quiet = false;
    }
  };
  const offer = (status: Status | undefined): void => {
    const next = status?.state === 'ready' ? status.ambiguous?.find(({ recorded }) => !asked.has(recorded)) : undefined;
    void commands.executeCommand('setContext', 'heatline.sourcesAmbiguous', (status?.ambiguous ?? []).length > 0);
    if (next !== undefined && !quiet) {
      void ask(next);
    }
  };
  context.subscriptions.push(
    server.onStatus(offer),
    commands.registerCommand('heatline.chooseSource', async () => {
      const { status } = server;
      const sources = status?.ambiguous ?? [];
      const picked = sources.length > 1
        ? (await window.showQuickPick(sourceItems(sources), { title: 'Sources that could be several files here' }))?.source
        : sources[0];
      if (picked === undefined) {
        return;
      }
      asked.add(picked.recorded);
      await choose(status, picked);
    }),
  );
}

/** Lets a file be chosen for a source and keeps the answer; tells whether there is one. */
async function choose(status: Status | undefined, source: AmbiguousSource): Promise<boolean> {
  const items = candidateItems(source, (path) => workspace.asRelativePath(path));
  const picked = await window.showQuickPick(items, { title: `Which file is ${source.recorded}?` });
  if (picked === undefined) {
    return false;
  }
  const target = workspace.workspaceFolders === undefined ? ConfigurationTarget.Global : ConfigurationTarget.Workspace;
  await workspace.getConfiguration('heatline').update('sourceMap', withAnswer(status?.sourceMap ?? [], picked.candidate), target);
  return true;
}
