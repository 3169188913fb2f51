import Fastify, { type FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'

/** What readiness depends on. */
export interface Readiness {
  /** Reasons why no traffic should come; none when it may. */
  reasons(): string[]
}

/** The second port, for operators only: liveness, readiness, metrics. */
export function createOpsListener(readiness: Readiness, registry: Registry): FastifyInstance {
  const ops = Fastify({ logger: false, exposeHeadRoutes: true })

  ops.get('/livez', async (_request, reply) => reply.type('text/plain').send('ok\n'))

  // The provider is not asked: its trouble is not ours, and a restart would not help.
  ops.get('/readyz', async (_request, reply) => {
    const reasons = readiness.reasons()
    return reply.code(reasons.length === 0 ? 200 : 503).send({ ready: reasons.length === 0, reasons })
  })

  ops.get('/metrics', async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  )
  return ops
}
