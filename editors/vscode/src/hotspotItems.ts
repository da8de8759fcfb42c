// The list of hotspots: a pure function of the server's answer.
import type { Hotspot, Status } from './protocol';
import { fileName } from './statusText';

/** One row of the picker. */
export interface HotspotItem {
  label: string;
  description: string;
  hotspot: Hotspot;
}

/** The rows, hottest first as the server sends them. */
export function hotspotItems(rows: readonly Hotspot[]): HotspotItem[] {
  return rows.map((hotspot) => ({
    label: `${hotspot.text}  ${hotspot.name}`,
    description: place(hotspot),
    hotspot,
  }));
}

/** The metric that holds the time in which threads waited. */
export function waitingMetric(status: Status | undefined): string | undefined {
  return status?.metrics.map(({ id }) => id).find((id) => id === 'waiting' || id === 'off-cpu');
}

function place({ location, module, placement }: Hotspot): string {
  if (location == null && placement === 'gone') {
    return `${module}, not there any more`;
  }
  if (location == null) {
    return `${module}, no source here`;
  }
  return `${fileName(decodeURIComponent(location.uri))}:${location.range.start.line + 1}`;
}
