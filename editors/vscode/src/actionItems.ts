// The list of actions: a pure function of the server's status.
import type { Status } from './protocol';
import { waitingMetric } from './hotspotItems';

/** One row and the command it runs. */
export interface ActionItem {
  label: string;
  command: string;
}

/** The actions that make sense in this state. */
export function actionItems(status: Status | undefined, annotationsShown: boolean): ActionItem[] {
  const always: ActionItem[] = [
    { label: '$(debug-restart) Restart the server', command: 'heatline.restartServer' },
    { label: '$(output) Show the log', command: 'heatline.showLog' },
  ];
  if (status === undefined) {
    return always;
  }
  const open: ActionItem = { label: '$(folder-opened) Open a profile…', command: 'heatline.openProfile' };
  return [open, ...(status.profile == null ? [] : profileActions(status, annotationsShown)), ...always];
}

function profileActions(status: Status, annotationsShown: boolean): ActionItem[] {
  const actions: ActionItem[] = [
    { label: '$(flame) Show the hottest lines…', command: 'heatline.showHotspots' },
    { label: '$(symbol-function) Show the hottest functions…', command: 'heatline.showHotFunctions' },
    ...(waitingMetric(status) === undefined ? [] : [{ label: '$(watch) Show what waits most…', command: 'heatline.showWaits' }]),
    { label: '$(graph) Pick a metric…', command: 'heatline.pickMetric' },
    annotationsShown
      ? { label: '$(eye-closed) Switch annotations off', command: 'heatline.toggleAnnotations' }
      : { label: '$(eye) Switch annotations on', command: 'heatline.toggleAnnotations' },
    { label: '$(git-compare) Set the baseline…', command: 'heatline.setBaseline' },
    { label: '$(pin) Freeze the profile as baseline', command: 'heatline.freezeBaseline' },
  ];
  if (status.baseline !== null) {
    actions.push(
      { label: '$(arrow-up) Show regressions…', command: 'heatline.showRegressions' },
      { label: '$(arrow-down) Show improvements…', command: 'heatline.showImprovements' },
      { label: '$(discard) Clear the baseline', command: 'heatline.clearBaseline' },
    );
  }
  if ((status.ambiguous ?? []).length > 0) {
    actions.push({ label: '$(question) Choose the file of a source…', command: 'heatline.chooseSource' });
  }
  actions.push(
    { label: '$(refresh) Read the profile again', command: 'heatline.refresh' },
    { label: '$(close) Close the profile', command: 'heatline.closeProfile' },
  );
  return actions;
}
