import Fastify, { type FastifyInstance } from 'fastify'
import { Gauge, Registry } from 'prom-client'
import { NO_SCHEMAS } from '../http/no-schemas.ts'

/** What operators may ask: of one process, or of the supervisor of several. */
export interface OpsSource {
  /** Reasons why no traffic should come; none when it may. */
  reasons(): string[] | Promise<string[]>
  /** What should be put right although traffic may come. */
  warnings(): string[] | Promise<string[]>
  /** The metrics as they are now. */
  registry(): Registry | Promise<Registry>
}

/** The second port, for operators only: liveness, readiness, metrics. */
export function createOpsListener(operations: OpsSource): FastifyInstance {
  const ops = Fastify({
    logger: false,
    schemaController: NO_SCHEMAS,
    exposeHeadRoutes: true,
    forceCloseConnections: true,
  })

  ops.get('/livez', async (_request, reply) => reply.type('text/plain').send('ok\n'))

  // The provider is not asked: its trouble is not ours, and a restart would not help.
  ops.get('/readyz', async (_request, reply) => {
    const [reasons, warnings] = await Promise.all([operations.reasons(), operations.warnings()])
    return reply
      .code(reasons.length === 0 ? 200 : 503)
      .send({ ready: reasons.length === 0, reasons, warnings })
  })

  const own = new Registry()
  const readiness = new Gauge({ name: 'bff_ready', help: 'Whether traffic should come', registers: [own] })
  ops.get('/metrics', async (_request, reply) => {
    const registry = await operations.registry()
    readiness.set(Number((await operations.reasons()).length === 0))
    return reply.type(registry.contentType).send((await registry.metrics()) + (await own.metrics()))
  })
  return ops
}
