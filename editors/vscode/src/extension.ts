// Wires the features together; each lives in a file of its own.
import { commands, type ExtensionContext } from 'vscode';
import * as actions from './actions';
import { Annotations } from './annotations';
import * as calls from './calls';
import * as deltas from './deltas';
import * as heat from './heat';
import * as hotspots from './hotspots';
import * as metric from './metric';
import * as profiles from './profiles';
import { LoadingProgress } from './progress';
import { Server } from './server';
import * as sources from './sources';
import * as statusItem from './statusItem';

export async function activate(context: ExtensionContext): Promise<void> {
  const annotations = new Annotations(context);
  const progress = new LoadingProgress((token) => { server.cancel(token); });
  const server = new Server(context, { ...annotations.middleware, ...calls.middleware, ...progress.middleware });
  const paintStatus = statusItem.activate(context, server, annotations);
  const paintHeat = heat.activate(context, server, annotations);
  const paintDeltas = deltas.activate(context, server, annotations);
  annotations.activate(() => {
    server.repaint();
    paintHeat();
    paintDeltas();
    paintStatus();
  });
  profiles.activate(context, server);
  sources.activate(context, server);
  metric.activate(context, server);
  calls.activate(context);
  hotspots.activate(context, server);
  actions.activate(context, server, annotations);
  context.subscriptions.push(
    server,
    commands.registerCommand('heatline.restartServer', () => server.restart()),
    commands.registerCommand('heatline.showLog', () => { server.showLog(); }),
  );
  await server.start();
}
