// Making the client of the server: which program, how it is started, what the editor asks it for.
import { statSync } from 'node:fs';
import { commands, window, workspace, type ExtensionContext, type LogOutputChannel } from 'vscode';
import { LanguageClient, RevealOutputChannelOn, TransportKind, type Executable, type Middleware } from 'vscode-languageclient/node';
import { findServer, type Found } from './findServer';
import type { Settings } from './settings';

/** Looks for the server from where this extension is. */
export function locate(context: ExtensionContext): Found {
  return findServer({
    setting: workspace.getConfiguration('heatline').get<string | null>('server.path', null),
    extensionFolder: context.extensionPath,
    workspaceFolder: workspace.workspaceFolders?.[0]?.uri.fsPath,
    platform: process.platform,
    searchPath: process.env['PATH'] ?? '',
    isFile: (path) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false,
  });
}

/** Says that there is no server and offers the setting that names one. */
export async function offerSetting(message: string): Promise<void> {
  const open = 'Open the Setting';
  if ((await window.showErrorMessage(message, open)) === open) {
    await commands.executeCommand('workbench.action.openSettings', 'heatline.server.path');
  }
}

/** A client, not yet started, for files of every language. */
export function createClient(program: string, log: LogOutputChannel, middleware: Middleware, settings: () => Settings): LanguageClient {
  const executable: Executable = { command: program, args: ['lsp'], transport: TransportKind.stdio };
  return new LanguageClient('heatline', 'Heatline', { run: executable, debug: executable }, {
    documentSelector: [{ scheme: 'file' }],
    initializationOptions: settings,
    outputChannel: log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    stdioOptions: {
      stdout: (stream) => { stream.resume(); },
      // The server logs to its standard error; not all of that is an error.
      stderr: (stream) => { stream.on('data', (text: Buffer) => { log.info(text.toString().trimEnd()); }); },
    },
    middleware: {
      ...middleware,
      workspace: {
        configuration: ({ items }) => items.map(({ section }) => (section === 'heatline' ? settings() : null)),
      },
    },
  });
}
