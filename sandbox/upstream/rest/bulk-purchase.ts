import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import type { AccountType } from '../accounts.ts'
import { purchaseView } from '../contract.ts'
import { Refusal } from '../refusal.ts'
import { contractProperties, type Terms, termsOf } from '../terms.ts'
import type { World } from '../world.ts'
import { bearerOf, hasAppId, ownerOfPat } from './credentials.ts'
import { optionsEnvelope } from './envelopes.ts'
import { Failure } from './failure.ts'
import { bodyOf, wrapFailures } from './handlers.ts'

/** It has a PAT for each account (docs/upstream.md, Credentials). */
const purchase = Type.Object({
  contract_parameters: Type.Object(contractProperties),
  accounts: Type.Array(Type.Object({ token: Type.String(), account_id: Type.String() }), {
    minItems: 1,
    maxItems: 100,
  }),
})
type Payer = Static<typeof purchase>['accounts'][number]

/** Buys a contract for several accounts. The PATs in the body are the only credentials. A repeated body buys again. */
export async function bulkPurchaseRoutes(app: FastifyInstance, { world }: { world: World }): Promise<void> {
  wrapFailures(app, optionsEnvelope)
  for (const type of ['demo', 'real'] as const)
    app.post(`/trading/v1/options/contracts/bulk-purchase/${type}`, async (request, reply) => {
      checkCredentials(request)
      const { contract_parameters: contract, accounts } = bodyOf(purchase, request)
      const terms = refusalAsFailure(() => termsOf(contract, world.market))
      const transactions = accounts.map((payer) => buyFor(payer, type, terms, world))
      return optionsEnvelope.success({ transactions }, request, reply)
    })
}

function checkCredentials(request: FastifyRequest): void {
  if (bearerOf(request) !== undefined)
    throw new Failure(400, 'BearerNotAllowed', 'A bulk purchase takes no bearer token.')
  if (!hasAppId(request)) throw new Failure(400, 'MissingAppId', 'The header Service-App-ID is missing.')
}

/** The transaction of one account. An invalid token or an empty account affects only its own purchase. */
function buyFor({ token, account_id }: Payer, type: AccountType, terms: Terms, { users, contracts }: World): object {
  const account = ownerOfPat(token, users)?.account
  if (account?.type !== type || account.id !== account_id)
    return { account_id, error: { code: 'InvalidToken', message: 'The token is invalid.' } }
  try {
    return { account_id: account.id, ...purchaseView(contracts.buy(account, terms)) }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { account_id: account.id, error: { code: error.code, message: error.message } }
  }
}

function refusalAsFailure<Result>(attempt: () => Result): Result {
  try {
    return attempt()
  } catch (error) {
    throw error instanceof Refusal ? new Failure(400, error.code, error.message) : error
  }
}
