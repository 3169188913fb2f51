import type { Test } from 'tap'
import { apiWorld } from './api-world.ts'
import { around, type Scenario } from './scrapes.ts'

const ACCOUNTS = '/api/trading/v1/options/accounts'

/** Users send more orders than the budget allows. */
export async function usedBudgetScenario(t: Test): Promise<Scenario> {
  const { world, call } = await apiWorld(t, { settings: { UPSTREAM_BUDGET: '10/600' } })
  return around(world.server, 'the budget is used up', ['BffBudgetRefusesOrders', 'BffBudgetNearlyUsed'], async () => {
    for (let count = 0; count < 12; count++) await call('POST', ACCOUNTS, { body: '{}' })
  })
}

/** Upstream refuses calls that the budget allows. */
export async function heldBackScenario(t: Test): Promise<Scenario> {
  const { world, upstream, call } = await apiWorld(t, { settings: { UPSTREAM_BUDGET: '1000/60' } })
  upstream.answer = (_request, socket) => void socket.write('HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n')
  return around(world.server, 'upstream refuses reads', ['BffBudgetHeldBack'], () => call('GET', ACCOUNTS))
}
