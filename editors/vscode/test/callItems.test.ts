import { expect, it } from 'vitest';
import { callItems } from '../src/callItems';

it('callers and callees stand under their headings in the order of the server', () => {
  const cost = { weight: 1, percent: 1, samples: 1 };
  const call = (name: string) => ({ name, module: 'app', cost, text: '1.0 %' });
  const items = callItems({ callers: [call('main')], callees: [call('b'), call('a')] });
  expect(items.map(({ label }) => label)).toEqual([
    'called by',
    '$(call-incoming) main',
    'calls',
    '$(call-outgoing) b',
    '$(call-outgoing) a',
  ]);
  expect(items[1]?.description).toBe('1.0 % · app');
  expect(callItems({ callers: [], callees: [call('a')] })[0]?.label).toBe('calls');
});
