import type { FastifyInstance } from 'fastify'
import type { World } from '../world.ts'
import { walletsEnvelope } from './envelopes.ts'
import { forUsersOf, notFound, pathParameter, wrapFailures } from './handlers.ts'

/** The wallets of a user: `main`, from which payments are made, and `demo`. */
export async function walletRoutes(app: FastifyInstance, { world }: { world: World }): Promise<void> {
  wrapFailures(app, walletsEnvelope)
  const forUser = forUsersOf(world, walletsEnvelope)

  app.get(
    '/wallet/v1/wallets',
    forUser(({ wallets }) =>
      wallets.map(({ id, type, currency, balance }) => ({
        wallet_id: id,
        wallet_type: type,
        currency,
        // Like in the real service, this is a string, while balances of trading accounts are numbers.
        balance: balance.toFixed(2),
      })),
    ),
  )

  app.get(
    '/wallet/v1/transactions/:wallet_type',
    forUser(({ wallets }, request) => {
      const wallet = wallets.find(({ type }) => type === pathParameter(request, 'wallet_type'))
      if (!wallet) throw notFound('wallet type')
      return wallet.transactions.toReversed()
    }),
  )
}
