// The running server: starting and stopping its client, its status, its commands, its settings.
import { statSync } from 'node:fs';
import { commands, EventEmitter, window, workspace, type Disposable, type ExtensionContext, type LogOutputChannel } from 'vscode';
import {
  CodeLensRequest,
  DidChangeConfigurationNotification,
  ExecuteCommandRequest,
  InlayHintRequest,
  LanguageClient,
  RevealOutputChannelOn,
  State,
  TransportKind,
  type LanguageClientOptions,
  type Middleware,
  type ServerOptions,
} from 'vscode-languageclient/node';
import { findServer } from './findServer';
import { StatusNotification, StatusRequest, type Status } from './protocol';
import { readSettings, type Settings } from './settings';

/** One server at a time, for the whole window. */
export class Server implements Disposable {
  readonly #statusChanged = new EventEmitter<Status | undefined>();
  readonly #log: LogOutputChannel;
  readonly #declared: string[];
  readonly #subscriptions: { dispose(): unknown }[] = [];
  #client: LanguageClient | undefined;
  #status: Status | undefined;

  /** Fires with every status; with `undefined` when there is no server. */
  readonly onStatus = this.#statusChanged.event;

  constructor(
    private readonly context: ExtensionContext,
    private readonly middleware: Middleware,
  ) {
    this.#log = window.createOutputChannel('Heatline', { log: true });
    this.#declared = declaredSettings(context);
    this.#subscriptions.push(
      this.#log,
      this.#statusChanged,
      workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration('heatline.server.path')) {
          void this.restart();
        } else if (change.affectsConfiguration('heatline')) {
          void this.#client?.sendNotification(DidChangeConfigurationNotification.type, { settings: { heatline: this.#settings() } });
        }
      }),
    );
  }

  get status(): Status | undefined {
    return this.#status;
  }

  /** Starts the server, or says why it cannot. */
  async start(): Promise<void> {
    const found = findServer({
      setting: workspace.getConfiguration('heatline').get<string | null>('server.path', null),
      extensionFolder: this.context.extensionPath,
      workspaceFolder: workspace.workspaceFolders?.[0]?.uri.fsPath,
      platform: process.platform,
      searchPath: process.env['PATH'] ?? '',
      isFile,
    });
    if ('missing' in found) {
      this.#log.error(found.missing);
      void offerSetting(found.missing);
      return;
    }
    this.#log.info(`starting ${found.path}`);
    const client = new LanguageClient('heatline', 'Heatline', serverOptions(found.path), this.#clientOptions());
    this.#client = client;
    client.onNotification(StatusNotification, (status) => { this.#show(status); });
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Running) {
        void this.#askStatus(client);
      } else if (newState === State.Stopped) {
        this.#show(undefined);
      }
    });
    try {
      await client.start();
    } catch (error) {
      this.#log.error(`the server did not start: ${String(error)}`);
    }
  }

  async stop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#show(undefined);
    try {
      await client?.dispose();
    } catch (error) {
      this.#log.warn(`the server did not stop in order: ${String(error)}`);
    }
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** Runs a command of the server and gives its result; what goes wrong is shown to the user and gives `undefined`. */
  async execute(command: string, ...args: unknown[]): Promise<unknown> {
    if (this.#client?.isRunning() !== true) {
      void window.showErrorMessage('The Heatline server is not running. “Heatline: Show the Log” says why.');
      return undefined;
    }
    try {
      return await this.#client.sendRequest(ExecuteCommandRequest.type, { command, arguments: args });
    } catch (error) {
      void window.showErrorMessage(`Heatline: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }

  /** Makes the editors ask for hints and lenses again. */
  repaint(): void {
    const client = this.#client;
    for (const document of workspace.textDocuments) {
      client?.getFeature(InlayHintRequest.method).getProvider(document)?.onDidChangeInlayHints.fire();
      client?.getFeature(CodeLensRequest.method).getProvider(document)?.onDidChangeCodeLensEmitter.fire();
    }
  }

  showLog(): void {
    this.#log.show();
  }

  dispose(): void {
    void this.stop();
    for (const subscription of this.#subscriptions) {
      subscription.dispose();
    }
  }

  #settings(): Settings {
    return readSettings(this.#declared);
  }

  #show(status: Status | undefined): void {
    this.#status = status;
    this.#statusChanged.fire(status);
  }

  async #askStatus(client: LanguageClient): Promise<void> {
    try {
      this.#show(await client.sendRequest(StatusRequest));
    } catch (error) {
      this.#log.warn(`no status: ${String(error)}`);
    }
  }

  #clientOptions(): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: 'file' }],
      initializationOptions: () => this.#settings(),
      outputChannel: this.#log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      stdioOptions: {
        stdout: (stream) => { stream.resume(); },
        stderr: (stream, log) => { stream.on('data', (text: Buffer) => { log.info(text.toString().trimEnd()); }); },
      },
      middleware: {
        ...this.middleware,
        workspace: {
          configuration: (parameters) => parameters.items.map(({ section }) => (section === 'heatline' ? this.#settings() : null)),
        },
      },
    };
  }
}

function serverOptions(command: string): ServerOptions {
  const executable = { command, args: ['lsp'], transport: TransportKind.stdio };
  return { run: executable, debug: executable };
}

function declaredSettings(context: ExtensionContext): string[] {
  const manifest = context.extension.packageJSON as { contributes: { configuration: { properties: object } } };
  return Object.keys(manifest.contributes.configuration.properties);
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

async function offerSetting(message: string): Promise<void> {
  const open = 'Open the Setting';
  if ((await window.showErrorMessage(message, open)) === open) {
    await commands.executeCommand('workbench.action.openSettings', 'heatline.server.path');
  }
}
