import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { type Static, Type } from 'typebox'
import type { Payment, User } from '../users.ts'
import type { World } from '../world.ts'
import { agentsEnvelope } from './envelopes.ts'
import { Failure } from './failure.ts'
import { bodyOf, forUsersOf, type Handle, notFound, pathParameter, wrapFailures } from './handlers.ts'

/** The code of every withdrawal, as the sandbox sends no e-mail. */
const VERIFICATION_CODE = '123456'

const paymentSchema = Type.Object({
  /** An idempotency key that the caller chooses. */
  request_id: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
  amount: Type.Number({ exclusiveMinimum: 0 }),
  currency: Type.Optional(Type.Literal('USD')),
})
const withdrawalSchema = Type.Interface([paymentSchema], { verification_code: Type.String() })

/** Transfers and withdrawals from the main wallet. */
export async function paymentRoutes(app: FastifyInstance, { world }: { world: World }): Promise<void> {
  wrapFailures(app, agentsEnvelope)
  const forUser = forUsersOf(world, agentsEnvelope)

  app.post(
    '/payment-agents/v1/transfer',
    forUser((user, request, reply) => pay(user, 'transfer', bodyOf(paymentSchema, request), reply)),
  )
  app.get('/payment-agents/v1/transfer/:request_id', forUser(statusOf('transfer')))

  app.post(
    '/payment-agents/v1/withdraw/verification_code',
    forUser(({ nickname }) => ({ sent: true, to: `${nickname}@example.test` })),
  )
  app.post(
    '/payment-agents/v1/withdraw',
    forUser((user, request, reply) => {
      const body = bodyOf(withdrawalSchema, request)
      if (body.verification_code !== VERIFICATION_CODE)
        throw new Failure(400, 'InvalidVerificationCode', 'The code is wrong.', 'verification_code')
      return pay(user, 'withdraw', body, reply)
    }),
  )
  app.get('/payment-agents/v1/withdraw/:request_id', forUser(statusOf('withdraw')))
}

/** Moves the money unless this `request_id` has already done so. The status is 201 the first time and then 200. */
function pay(user: User, kind: Payment['kind'], body: Static<typeof paymentSchema>, reply: FastifyReply): Payment {
  const { request_id: requestId = randomUUID(), amount } = body
  const earlier = user.payments.get(requestId)
  if (earlier) return earlier
  const wallet = user.wallets.find(({ type }) => type === 'main')
  if (!wallet || wallet.balance < amount)
    throw new Failure(400, 'InsufficientBalance', 'The main wallet holds too little.', 'amount')
  wallet.book(kind, -amount)
  const payment: Payment = {
    request_id: requestId,
    kind,
    status: 'completed',
    amount: amount.toFixed(2),
    currency: wallet.currency,
    created_at: new Date().toISOString(),
  }
  user.payments.set(requestId, payment)
  reply.code(201)
  return payment
}

function statusOf(kind: Payment['kind']): Handle {
  return ({ payments }, request) => {
    const found = payments.get(pathParameter(request, 'request_id'))
    if (found?.kind !== kind) throw notFound(kind)
    return found
  }
}
