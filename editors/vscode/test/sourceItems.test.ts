import { describe, expect, it } from 'vitest';
import { candidateItems, question, sourceItems, withAnswer } from '../src/sourceItems';

const util = {
  recorded: '/build/lib/util.c',
  candidates: [
    { path: '/w/one/lib/util.c', from: '/build', to: '/w/one' },
    { path: '/w/two/lib/util.c', from: '/build', to: '/w/two' },
  ],
};

describe('a source that could be several files', () => {
  it('is asked about by its name, with the reason', () => {
    expect(question(util)).toContain('util.c could be one of 2 files here, so its costs are not shown');
    expect(sourceItems([util])).toMatchObject([{ label: '$(file) util.c', description: '/build/lib/util.c', source: util }]);
  });
  it('offers the files as people know them and says what else an answer settles', () => {
    const items = candidateItems(util, (path) => path.replace('/w/', ''));
    expect(items.map(({ label }) => label)).toEqual(['$(file) one/lib/util.c', '$(file) two/lib/util.c']);
    expect(items[0]?.description).toBe('so /build is /w/one');
  });
  it('is settled by a pair before the others, once', () => {
    expect(withAnswer([['/a', '/b'], ['/build', '/w/two']], { path: '', from: '/build', to: '/w/two' })).toEqual([['/build', '/w/two'], ['/a', '/b']]);
    expect(withAnswer([['/build', '/w/one']], { path: '', from: '/build', to: '/w/two' })).toEqual([['/build', '/w/two'], ['/build', '/w/one']]);
  });
});
