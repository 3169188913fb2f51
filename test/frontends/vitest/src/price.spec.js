import { act, createElement as h } from 'react'
import { createRoot } from 'react-dom/client'
import { useSession, useSubscription } from 'trading-bff-client/react'
import { createFakeClient } from 'trading-bff-client/testing'
import { expect, test, vi } from 'vitest'

globalThis.IS_REACT_ACT_ENVIRONMENT = true

function Price({ client }) {
  const session = useSession(client)
  const { data, error, status } = useSubscription(client, { ticks: 'R_100' })
  return h('p', null, `${session.status} ${status.state} ${error?.code ?? data?.tick.quote}`)
}

test('a component shows the session and each price', async () => {
  const client = createFakeClient()
  const root = createRoot(document.body.appendChild(document.createElement('main')))
  await act(() => root.render(h(Price, { client })))
  const shows = (text) =>
    vi.waitFor(async () => {
      await act(async () => {})
      expect(document.body.textContent).toBe(text)
    })
  await shows('anonymous open undefined')
  act(() => client.server.push({ ticks: 'R_100' }, { tick: { epoch: 1, quote: 1.5 } }))
  expect(document.body.textContent).toBe('anonymous open 1.5')
  await act(() => client.server.logIn())
  expect(document.body.textContent).toBe('active open 1.5')
  act(() => client.server.disconnect())
  expect(document.body.textContent).toBe('active waiting 1.5')
  await shows('active open 1.5')
  await act(() => root.unmount())
  client.close()
})
