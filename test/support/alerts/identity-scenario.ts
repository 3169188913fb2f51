import type { Test } from 'tap'
import { IDENTIFIED } from '../login/identity.ts'
import { around, type Scenario } from './scrapes.ts'
import { startWorld } from '../world.ts'

const LOGINS = 6

/** Upstream does not say whose sessions are. */
export async function identityScenario(t: Test): Promise<Scenario> {
  const world = await startWorld(t, IDENTIFIED)
  world.upstream.onIdentity = (_request, response) => response.writeHead(404).end()
  return around(world.server, 'upstream does not know the path of the identity', ['BffIdentityFailing'], async () => {
    for (let count = 0; count < LOGINS; count++) await world.user('CR1')
  })
}
