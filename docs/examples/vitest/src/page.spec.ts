import { createFakeClient } from 'trading-bff-client/testing'
import { expect, test, vi } from 'vitest'
import { showPage } from './page.ts'

test('after a lost answer, the page does not say that nothing was bought', async () => {
  const client = createFakeClient({ session: { subject: 'user-1' } })
  client.server.reply('ticks', { tick: { epoch: 1_700_000_000, quote: 1.5 } })
  client.server.reply('buy', () => client.server.disconnect())
  showPage(client, document.body)
  await vi.waitFor(() => expect(document.querySelector('output')?.textContent).toBe('1.5'))

  document.querySelector('button')?.click()
  await vi.waitFor(() => expect(document.querySelector('p')?.textContent).toBe('Look at your contracts'))
  client.close()
})
