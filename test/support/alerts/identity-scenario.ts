import type { Test } from 'tap'
import { identityWorld } from '../login/identity-world.ts'
import { around, type Scenario } from './scrapes.ts'

const LOGINS = 6

/** Upstream does not say whose sessions are. */
export async function identityScenario(t: Test): Promise<Scenario> {
  const world = await identityWorld(t)
  world.answer = (_request, response) => response.writeHead(404).end()
  return around(world.server, 'upstream does not know the path of the identity', ['BffIdentityFailing'], async () => {
    for (let count = 0; count < LOGINS; count++) await world.logIn('CR1')
  })
}
