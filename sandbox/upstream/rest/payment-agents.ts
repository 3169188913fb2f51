import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { World } from '../world.ts'
import { agentsEnvelope } from './envelopes.ts'
import { bodyOf, forUsersOf, notFound, pathParameter, wrapFailures } from './handlers.ts'

const AGENTS = [
  { id: 'agent-1', name: 'Harbour Exchange', countries: ['id', 'my'], currency: 'USD', commission: '1.0' },
  { id: 'agent-2', name: 'Riverside Payments', countries: ['ke', 'tz'], currency: 'USD', commission: '0.8' },
  { id: 'agent-3', name: 'Old Town Transfers', countries: ['br'], currency: 'USD', commission: '1.5' },
]

/** Payment agents, the settings of their clients, and nicknames, which all use the same envelope. */
export async function paymentAgentRoutes(app: FastifyInstance, { world }: { world: World }): Promise<void> {
  wrapFailures(app, agentsEnvelope)
  const forUser = forUsersOf(world, agentsEnvelope)

  app.get(
    '/account/v1/nickname',
    forUser(({ nickname }) => ({ nickname })),
  )

  app.get(
    '/payment-agents/v1/clients/me',
    forUser((user) => user.agentSettings),
  )

  app.patch(
    '/payment-agents/v1/clients/me',
    forUser((user, request) =>
      Object.assign(user.agentSettings, bodyOf(Type.Record(Type.String(), Type.Unknown()), request)),
    ),
  )

  app.get(
    '/payment-agents/v1/agents',
    forUser(() => AGENTS),
  )

  app.get(
    '/payment-agents/v1/agents/:id',
    forUser((_user, request) => {
      const agent = AGENTS.find(({ id }) => id === pathParameter(request, 'id'))
      if (!agent) throw notFound('payment agent')
      return agent
    }),
  )

  app.get(
    '/payment-agents/v1/agent-statistics',
    forUser(({ payments }) => ({
      currency: 'USD',
      transfers: payments.size,
      clients: 0,
      commission: '0.00',
    })),
  )
}
