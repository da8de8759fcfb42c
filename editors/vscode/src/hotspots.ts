// Going to what costs: the hottest line, the next and the previous one, and a list of all with a preview.
import { commands, window, type ExtensionContext, type QuickPickItem, type TextEditor } from 'vscode';
import { hotspotItems, waitingMetric, type HotspotItem } from './hotspotItems';
import { jumpTo } from './jump';
import { AdjacentHotspotRequest, HotspotsRequest, type HotspotsParams } from './protocol';
import type { Server } from './server';

/** At most so many rows in the list. */
const LIMIT = 200;

/** Registers the commands. */
export function activate(context: ExtensionContext, server: Server): void {
  context.subscriptions.push(
    commands.registerCommand('heatline.goToHottestLine', () => goToHottest(server)),
    commands.registerCommand('heatline.nextHotspot', () => goToAdjacent(server, 'next')),
    commands.registerCommand('heatline.previousHotspot', () => goToAdjacent(server, 'previous')),
    commands.registerCommand('heatline.showHotspots', () => pick(server, 'line', 'exclusive', 'Hottest lines')),
    commands.registerCommand('heatline.showHotFunctions', () => pick(server, 'function', 'exclusive', 'Hottest functions')),
    commands.registerCommand('heatline.showWaits', () => pickWaits(server)),
    commands.registerCommand('heatline.showRegressions', () => pick(server, 'function', 'regression', 'Regressions')),
    commands.registerCommand('heatline.showImprovements', () => pick(server, 'function', 'improvement', 'Improvements')),
  );
}

async function goToHottest(server: Server): Promise<void> {
  const answer = await server.request(HotspotsRequest, { by: 'line', order: 'exclusive', limit: LIMIT });
  const location = answer?.rows.find((row) => row.location != null)?.location;
  if (location == null) {
    nothing();
    return;
  }
  await jumpTo(location);
}

async function goToAdjacent(server: Server, direction: 'next' | 'previous'): Promise<void> {
  const editor = window.activeTextEditor;
  if (editor === undefined) {
    await goToHottest(server);
    return;
  }
  const { line, character } = editor.selection.active;
  const answer = await server.request(AdjacentHotspotRequest, {
    textDocument: { uri: editor.document.uri.toString() },
    position: { line, character },
    direction,
    order: 'rank',
  });
  if (answer == null) {
    nothing();
    return;
  }
  await jumpTo(answer.location);
  window.setStatusBarMessage(`Hotspot ${answer.rank} of ${answer.of}`, 3000);
}

function nothing(): void {
  void window.showInformationMessage('Heatline: no line whose source is here costs anything.');
}

async function pickWaits(server: Server): Promise<void> {
  const metric = waitingMetric(server.status);
  if (metric === undefined) {
    void window.showInformationMessage(
      'Heatline: this profile does not say when threads waited; record with uftrace (without --no-event) or with perf record --switch-events.',
    );
    return;
  }
  await pick(server, 'function', 'exclusive', 'What waits most', metric);
}

async function pick(
  server: Server,
  by: HotspotsParams['by'],
  order: HotspotsParams['order'],
  title: string,
  metric?: string,
): Promise<void> {
  const answer = await server.request(HotspotsRequest, { by, order, limit: LIMIT, ...(metric === undefined ? {} : { metric }) });
  const items = hotspotItems(answer?.rows ?? []);
  if (items.length === 0) {
    if (order === 'exclusive') {
      nothing();
    } else {
      void window.showInformationMessage(`Heatline: ${title.toLowerCase()}: nothing differs from the baseline in this direction.`);
    }
    return;
  }
  const back = origin(window.activeTextEditor);
  const chosen = await choose(items, title);
  if (chosen?.hotspot.location != null) {
    await jumpTo(chosen.hotspot.location);
  } else {
    await back();
  }
}

/** Lets the user walk through the list with each place shown; `undefined` if nothing was chosen. */
function choose(items: HotspotItem[], title: string): Promise<HotspotItem | undefined> {
  return new Promise((resolve) => {
    const list = window.createQuickPick<HotspotItem & QuickPickItem>();
    list.title = title;
    list.placeholder = 'Type to filter, move to preview';
    list.matchOnDescription = true;
    list.items = items;
    list.onDidChangeActive(([active]) => {
      if (active?.hotspot.location != null) {
        void jumpTo(active.hotspot.location, true);
      }
    });
    let accepted: HotspotItem | undefined;
    list.onDidAccept(() => {
      accepted = list.activeItems[0];
      list.hide();
    });
    list.onDidHide(() => {
      list.dispose();
      resolve(accepted);
    });
    list.show();
  });
}

/** The way back to where the user was. */
function origin(editor: TextEditor | undefined): () => Promise<void> {
  if (editor === undefined) {
    return () => Promise.resolve();
  }
  const { document, selection, viewColumn } = editor;
  return async () => {
    await window.showTextDocument(document, { selection, ...(viewColumn === undefined ? {} : { viewColumn }) });
  };
}
