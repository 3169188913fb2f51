import type { FastifyInstance } from 'fastify'
import type { Endpoint } from './endpoint.ts'
import { openApiDocument, type OpenApiFacts } from './openapi.ts'

/** `GET /openapi.json`. The document is built once. */
export async function openApiRoute(
  fastify: FastifyInstance,
  deps: { readonly endpoints: readonly Endpoint[]; readonly facts: OpenApiFacts },
): Promise<void> {
  const document = JSON.stringify(openApiDocument(deps.endpoints, deps.facts))
  fastify.get('/openapi.json', async (_request, reply) =>
    reply.type('application/json').header('cache-control', 'no-cache').send(document),
  )
}
