import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { Account } from '../accounts.ts'
import type { User } from '../users.ts'
import type { World } from '../world.ts'
import { optionsEnvelope } from './envelopes.ts'
import { Failure } from './failure.ts'
import { bodyOf, forUsersOf, notFound, pathParameter, wrapFailures } from './handlers.ts'

const newAccount = Type.Object({
  account_type: Type.Enum(['demo', 'real']),
  currency: Type.String({ pattern: '^[A-Z]{3}$' }),
  group: Type.Literal('row'),
})

/** Trading accounts and the one-time URLs of their WebSockets, and whose token it is. */
export async function optionsRoutes(app: FastifyInstance, { world }: { world: World }): Promise<void> {
  wrapFailures(app, optionsEnvelope)
  const forUser = forUsersOf(world, optionsEnvelope)

  app.get(
    '/trading/v1/options/accounts',
    forUser(({ accounts }) => accounts.map(accountView)),
  )

  // An invented endpoint: where a real service says whose token it is, is the operator's setting IDENTITY_PATH.
  app.get(
    '/account/v1/me',
    forUser(({ id, nickname }) => ({ user_id: id, nickname })),
  )

  // Like the real service, this returns an object for an existing account and an array for a new one.
  app.post(
    '/trading/v1/options/accounts',
    forUser((user, request, reply) => {
      const { account_type: type, currency } = bodyOf(newAccount, request)
      const existing = user.accounts.find((it) => it.type === type && it.currency === currency)
      if (existing) return accountView(existing)
      reply.code(201)
      return [accountView(world.users.open(user, type, currency))]
    }),
  )

  app.post(
    '/trading/v1/options/accounts/:account_id/reset-demo-balance',
    forUser((user, request) => {
      const account = ownAccount(user, pathParameter(request, 'account_id'))
      if (account.type !== 'demo') throw new Failure(400, 'NotADemoAccount', 'Only a demo account can be reset.')
      account.reset()
      return accountView(account)
    }),
  )

  app.post(
    '/trading/v1/options/accounts/:account_id/otp',
    forUser((user, request) => {
      const account = ownAccount(user, pathParameter(request, 'account_id'))
      return { url: world.oneTimePasswords.issue(account, world.followsHost ? `ws://${request.host}` : undefined) }
    }),
  )

  app.get(
    '/applications/v1/markup-statistics',
    forUser(() => ({ currency: 'USD', total_markup: '0.00', transactions: 0, applications: [] })),
  )
}

function ownAccount(user: User, id: string): Account {
  const account = user.accounts.find((it) => it.id === id)
  if (!account) throw notFound('account')
  return account
}

function accountView({ id, type, currency, balance }: Account): object {
  return { account_id: id, account_type: type, currency, balance, group: 'row', status: 'active' }
}
