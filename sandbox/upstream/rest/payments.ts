import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { type TProperties, Type } from 'typebox'
import type { Payment, User } from '../users.ts'
import type { World } from '../world.ts'
import { agentsEnvelope } from './envelopes.ts'
import { Failure } from './failure.ts'
import { bodyOf, forUsersOf, type Handle, notFound, pathParameter, wrapFailures } from './handlers.ts'

/** The code of every withdrawal, as the sandbox sends no e-mail. */
const VERIFICATION_CODE = '123456'

const amount = Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?$' })
const currency = Type.Literal('USD')
/** An idempotency key that the caller chooses. */
const request_id = Type.Optional(Type.String({ pattern: '^[\\w-]{1,128}$' }))
const transferBody = enveloped({ to_nickname: Type.String(), amount, currency, request_id })
const plan = { agent_id: Type.Integer(), amount, currency }
const withdrawalBody = enveloped({ ...plan, verification_code: Type.String(), request_id })

/** Transfers and withdrawals from the main wallet. */
export async function paymentRoutes(app: FastifyInstance, { world }: { world: World }): Promise<void> {
  wrapFailures(app, agentsEnvelope)
  const forUser = forUsersOf(world, agentsEnvelope)

  app.post(
    '/payment-agents/v1/transfer',
    forUser((user, request, reply) => pay(user, 'transfer', bodyOf(transferBody, request).data, reply)),
  )
  app.get('/payment-agents/v1/transfer/:request_id', forUser(statusOf('transfer')))

  app.post(
    '/payment-agents/v1/withdraw/verification_code',
    forUser(({ nickname }, request) => {
      bodyOf(enveloped(plan), request)
      return { message: `The sandbox sends no e-mail to ${nickname}. The code is ${VERIFICATION_CODE}.` }
    }),
  )
  app.post(
    '/payment-agents/v1/withdraw',
    forUser((user, request, reply) => {
      const { data } = bodyOf(withdrawalBody, request)
      if (data.verification_code !== VERIFICATION_CODE)
        throw new Failure(400, 'InvalidOTP', 'The code is wrong.', 'verification_code')
      return pay(user, 'withdraw', data, reply)
    }),
  )
  app.get('/payment-agents/v1/withdraw/:request_id', forUser(statusOf('withdraw')))
}

/** The schema of a body: its members are in an envelope. */
function enveloped<Members extends TProperties>(members: Members) {
  return Type.Object({ data: Type.Object(members) })
}

interface Order {
  readonly amount: string
  readonly request_id?: string
}

/** Moves the money. @throws Failure if this `request_id` has done so before */
function pay(user: User, kind: Payment['kind'], order: Order, reply: FastifyReply): Payment {
  const { request_id: requestId = randomUUID() } = order
  const amount = Number(order.amount)
  if (user.payments.has(requestId))
    throw new Failure(400, 'RequestIDUsed', 'This request_id was used before.', 'request_id')
  const wallet = user.wallets.find(({ type }) => type === 'main')
  if (!wallet || wallet.balance < amount)
    throw new Failure(400, 'WalletFundsInsufficient', 'The main wallet holds too little.', 'amount')
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
