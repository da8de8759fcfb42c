// Loading that takes long: a notification with its progress and a way to cancel it. Short loading shows nothing here;
// the status item turns meanwhile.
import { ProgressLocation, window, type Progress } from 'vscode';
import type { Middleware, ProgressToken, WorkDoneProgressBegin, WorkDoneProgressEnd, WorkDoneProgressReport } from 'vscode-languageclient/node';

type Value = WorkDoneProgressBegin | WorkDoneProgressReport | WorkDoneProgressEnd;

/** What takes less than this shows no notification. */
const PATIENCE_MS = 1000;

/** Shows cancellable progress; any other goes the client's usual way. */
export class LoadingProgress {
  readonly #running = new Map<ProgressToken, Loading>();

  /** `cancel` tells the server. */
  constructor(private readonly cancel: (token: ProgressToken) => void) {}

  readonly middleware: Middleware = {
    handleWorkDoneProgress: (token, value, next) => {
      if (!this.#take(token, value)) {
        next(token, value);
      }
    },
  };

  #take(token: ProgressToken, value: Value): boolean {
    if (value.kind === 'begin' && value.cancellable === true) {
      this.#running.set(token, new Loading(value, () => { this.cancel(token); }));
      return true;
    }
    const loading = this.#running.get(token);
    if (loading === undefined || value.kind === 'begin') {
      return false;
    }
    if (value.kind === 'report') {
      loading.report(value);
      return true;
    }
    loading.end();
    this.#running.delete(token);
    // The client has to end its own part, which shows nothing.
    return false;
  }
}

class Loading {
  readonly #timer: NodeJS.Timeout;
  #shown: Progress<{ message?: string; increment?: number }> | undefined;
  #last: WorkDoneProgressBegin | WorkDoneProgressReport;
  #percentage = 0;
  #finish: (() => void) | undefined;

  constructor(
    begin: WorkDoneProgressBegin,
    private readonly cancel: () => void,
  ) {
    this.#last = begin;
    this.#timer = setTimeout(() => { this.#show(begin.title); }, PATIENCE_MS);
  }

  report(value: WorkDoneProgressReport): void {
    this.#last = value;
    this.#tell();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#finish?.();
  }

  #show(title: string): void {
    void window.withProgress({ location: ProgressLocation.Notification, title, cancellable: true }, (progress, token) => {
      token.onCancellationRequested(this.cancel);
      this.#shown = progress;
      this.#tell();
      return new Promise<void>((resolve) => { this.#finish = resolve; });
    });
  }

  #tell(): void {
    if (this.#shown === undefined) {
      return;
    }
    const { message, percentage = 0 } = this.#last;
    const increment = Math.max(0, percentage - this.#percentage);
    this.#percentage += increment;
    this.#shown.report(message === undefined ? { increment } : { message, increment });
  }
}
