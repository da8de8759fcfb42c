// The running server: starting and stopping its client, its status, its commands, its settings.
import { EventEmitter, window, workspace, type Disposable, type ExtensionContext, type LogOutputChannel, type TextDocument } from 'vscode';
import {
  CodeLensRequest,
  DidChangeConfigurationNotification,
  ExecuteCommandRequest,
  InlayHintRequest,
  State,
  WorkDoneProgressCancelNotification,
  type LanguageClient,
  type Middleware,
  type ProgressToken,
  type RequestType,
} from 'vscode-languageclient/node';
import { createClient, locate, offerSetting } from './client';
import { paintsDeltas } from './deltas';
import { StatusNotification, StatusRequest, type Status } from './protocol';
import { readSettings, type Settings } from './settings';

/** One server at a time, for the whole window. */
export class Server implements Disposable {
  readonly #statusChanged = new EventEmitter<Status | undefined>();
  readonly #repainted = new EventEmitter<void>();
  readonly #log: LogOutputChannel;
  readonly #declared: string[];
  readonly #subscriptions: { dispose(): unknown }[] = [];
  #client: LanguageClient | undefined;
  #status: Status | undefined;
  #refreshes: EventEmitter<void> | undefined;

  /** Fires when what was painted is to be asked for again. */
  readonly onRepaint = this.#repainted.event;

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
      this.#repainted,
      workspace.onDidOpenTextDocument(() => { this.#followRefreshes(); }),
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
    const found = locate(this.context);
    if ('missing' in found) {
      this.#log.error(found.missing);
      void offerSetting(found.missing);
      return;
    }
    this.#log.info(`starting ${found.path}`);
    const client = createClient(found.path, this.#log, this.middleware, () => this.#settings());
    this.#client = client;
    client.registerFeature(paintsDeltas);
    client.onNotification(StatusNotification, (status) => { this.#show(status); });
    client.onDidChangeState(({ newState }) => {
      if (client !== this.#client) {
        return;
      }
      if (newState === State.Running) {
        this.#followRefreshes();
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

  /** Asks the server; `undefined` while there is none, or if it cannot answer. */
  async request<P, R>(type: RequestType<P, R, void>, parameters: P): Promise<R | undefined> {
    if (this.#client?.isRunning() !== true) {
      return undefined;
    }
    try {
      return await this.#client.sendRequest<R>(type.method, parameters);
    } catch (error) {
      this.#log.warn(`${type.method}: ${String(error)}`);
      return undefined;
    }
  }

  /** Tells the server that its work is not wanted any more. */
  cancel(token: ProgressToken): void {
    void this.#client?.sendNotification(WorkDoneProgressCancelNotification.type, { token });
  }

  /** Makes the editors ask for hints and lenses again. */
  repaint(): void {
    const document = anyDocument();
    if (document !== undefined) {
      this.#client?.getFeature(InlayHintRequest.method).getProvider(document)?.onDidChangeInlayHints.fire();
      this.#client?.getFeature(CodeLensRequest.method).getProvider(document)?.onDidChangeCodeLensEmitter.fire();
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

  /** Passes on that the server wants its hints asked for again; the client tells it only to the hints' own provider. */
  #followRefreshes(): void {
    const document = anyDocument();
    if (document === undefined || this.#client?.isRunning() !== true) {
      return;
    }
    const refreshes = this.#client.getFeature(InlayHintRequest.method).getProvider(document)?.onDidChangeInlayHints;
    if (refreshes !== undefined && refreshes !== this.#refreshes) {
      this.#refreshes = refreshes;
      refreshes.event(() => { this.#repainted.fire(); });
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
}

/** All documents on disk have the same provider. */
function anyDocument(): TextDocument | undefined {
  return workspace.textDocuments.find(({ uri }) => uri.scheme === 'file');
}

function declaredSettings(context: ExtensionContext): string[] {
  const manifest = context.extension.packageJSON as { contributes: { configuration: { properties: object } } };
  return Object.keys(manifest.contributes.configuration.properties);
}
