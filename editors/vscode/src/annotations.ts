// Switching hints, lenses, hovers and heat on and off for this workspace, without touching any settings file.
import { commands, type ExtensionContext } from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';

const KEY = 'annotationsOff';

/** Whether annotations are shown; remembered per workspace. */
export class Annotations {
  #off: boolean;

  constructor(private readonly context: ExtensionContext) {
    this.#off = context.workspaceState.get(KEY, false);
  }

  get shown(): boolean {
    return !this.#off;
  }

  /** Answers nothing while annotations are off. */
  readonly middleware: Middleware = {
    provideInlayHints: (document, range, token, next) => (this.#off ? [] : next(document, range, token)),
    provideCodeLenses: (document, token, next) => (this.#off ? [] : next(document, token)),
    provideHover: (document, position, token, next) => (this.#off ? null : next(document, position, token)),
  };

  /** Registers the command; `changed` runs after each switch. */
  activate(changed: () => void): void {
    this.context.subscriptions.push(
      commands.registerCommand('heatline.toggleAnnotations', async () => {
        this.#off = !this.#off;
        await this.context.workspaceState.update(KEY, this.#off);
        changed();
      }),
    );
  }
}
