// The list that profiles are picked from: a pure function of what the server knows.
import { fileName } from './statusText';

/** One row; without a path, the row that opens the file dialog. */
export interface ProfileItem {
  label: string;
  description?: string;
  path?: string;
}

/** The rows for the profiles in `paths`, the current one marked. */
export function profileItems(paths: readonly string[], current: string | undefined): ProfileItem[] {
  return [
    ...paths.map((path) => ({ label: `${path === current ? '$(check)' : '$(file)'} ${fileName(path)}`, description: path, path })),
    { label: '$(folder-opened) Another file…' },
  ];
}
