// The list of callers and callees: a pure function of the server's answer.
import type { Call, Calls } from './protocol';

/** One row; headings have no call. */
export interface CallItem {
  label: string;
  description?: string;
  detail?: string;
  /** The value of `QuickPickItemKind.Separator` for headings. */
  kind?: -1;
  call?: Call;
}

/** Callers first, then callees, each under its heading, in the server's order. */
export function callItems({ callers, callees }: Calls): CallItem[] {
  return [...group('called by', callers, '$(call-incoming)'), ...group('calls', callees, '$(call-outgoing)')];
}

function group(heading: string, calls: readonly Call[], icon: string): CallItem[] {
  if (calls.length === 0) {
    return [];
  }
  return [
    { label: heading, kind: -1 },
    ...calls.map((call) => ({ label: `${icon} ${call.name}`, description: `${call.text} · ${call.module}`, call })),
  ];
}
