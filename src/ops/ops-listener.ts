import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { Gauge, Registry } from 'prom-client'
import { isHttp1, WRONG_VERSION } from '../http/http-version.ts'
import { NO_SCHEMAS } from '../http/no-schemas.ts'
import type { CarryOut } from './session-admin.ts'

/** What the ops listener reports about one process, or about all workers of a supervisor. */
export interface OpsSource {
  /** The reasons why the server should get no traffic; empty if it is ready. */
  reasons(): string[] | Promise<string[]>
  /** Problems that an operator should fix although the server is ready. */
  warnings(): string[] | Promise<string[]>
  /** The current metrics. */
  registry(): Registry | Promise<Registry>
  /** Lists and ends sessions. Absent where sessions have no subject. */
  readonly carryOut?: CarryOut | undefined
}

/** What the ops listener needs in order to let operators list and end sessions. */
export interface OperatorAccess {
  /** OPS_TOKEN; without it the paths do not exist. */
  readonly token: string | undefined
  readonly log: FastifyBaseLogger
}

/** Creates the listener for operators, with liveness, readiness and metrics. The public port has none of these. */
export function createOpsListener(operations: OpsSource, { token, log }: OperatorAccess): FastifyInstance {
  const ops = Fastify({
    logger: false,
    schemaController: NO_SCHEMAS,
    exposeHeadRoutes: true,
    forceCloseConnections: true,
  })

  ops.addHook('onRequest', async ({ raw }, reply) => {
    if (isHttp1(raw)) return
    return reply
      .code(WRONG_VERSION)
      .header('connection', 'close')
      .send({ error: 'The version of HTTP must be 1.1 or 1.0' })
  })

  ops.get('/livez', async (_request, reply) => reply.type('text/plain').send('ok\n'))

  // The provider does not count: no restart and no other instance would help while it fails.
  ops.get('/readyz', async (_request, reply) => {
    const [reasons, warnings] = await Promise.all([operations.reasons(), operations.warnings()])
    const ready = reasons.length === 0
    return reply.code(ready ? 200 : 503).send({ ready, reasons, warnings })
  })

  const { carryOut } = operations
  if (token !== undefined && carryOut !== undefined) {
    void ops.register(async function operators(scope) {
      const { operatorRoutes } = await import('./operator-routes.ts')
      await scope.register(operatorRoutes, { token, carryOut, log })
    })
  }

  const own = new Registry()
  const readiness = new Gauge({
    name: 'bff_ready',
    help: '1 while /readyz responds 200',
    registers: [own],
  })
  ops.get('/metrics', async (_request, reply) => {
    const registry = await operations.registry()
    readiness.set(Number((await operations.reasons()).length === 0))
    return reply.type(registry.contentType).send((await registry.metrics()) + (await own.metrics()))
  })
  return ops
}
