import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { World } from '../world.ts'
import { bareEnvelope } from './envelopes.ts'
import { Failure } from './failure.ts'
import { forUsersOf, queryParameter, wrapFailures } from './handlers.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const MAX_DAYS = 730

/** The partner overview (docs/upstream.md, Endpoints) with invented numbers: three sign-ups per day. */
export async function partnerRoutes(app: FastifyInstance, { world }: { world: World }): Promise<void> {
  wrapFailures(app, bareEnvelope)
  const forUser = forUsersOf(world, bareEnvelope)

  app.get(
    '/partners/analytics/v1/overview',
    forUser((_user, request) => {
      const start = dateOf(request, 'start_date')
      const end = dateOf(request, 'end_date')
      const days = (end.getTime() - start.getTime()) / DAY_MS
      if (days < 0) throw invalid('end_date', 'must not be before start_date')
      if (days > MAX_DAYS) throw invalid('end_date', `must be at most ${MAX_DAYS} days after start_date`)
      const signUps = 3 * (days + 1)
      return {
        start_date: queryParameter(request, 'start_date'),
        end_date: queryParameter(request, 'end_date'),
        signup_summary: { total: signUps, real: Math.floor(signUps / 3) },
        master_partner_summary: { sub_partners: 2, signups: Math.floor(signUps / 6) },
        activity_summary: {
          active_clients: Math.floor(signUps / 4),
          trades: signUps * 11,
          commission: '0.00',
        },
      }
    }),
  )
}

/** @throws Failure 400 unless the parameter is a calendar date */
function dateOf(request: FastifyRequest, name: string): Date {
  const text = queryParameter(request, name) ?? ''
  const date = new Date(`${text}T00:00:00Z`)
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || Number.isNaN(date.getTime()) || !date.toISOString().startsWith(text))
    throw invalid(name, 'must be a date like 2026-01-31')
  return date
}

function invalid(field: string, rule: string): Failure {
  return new Failure(400, 'ValidationError', `${field} ${rule}`, field)
}
