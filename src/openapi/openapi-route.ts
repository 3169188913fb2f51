import type { FastifyInstance } from 'fastify'
import type { Endpoint } from '../proxy/endpoint.ts'
import { openApiDocument, type OpenApiFacts } from './document.ts'

/** `GET /openapi.json`. The document is built at the first request, so that no start waits for it. */
export async function openApiRoute(
  fastify: FastifyInstance,
  deps: { readonly endpoints: readonly Endpoint[]; readonly facts: OpenApiFacts },
): Promise<void> {
  let document: string | undefined
  fastify.get('/openapi.json', async (_request, reply) => {
    document ??= JSON.stringify(openApiDocument(deps.endpoints, deps.facts))
    return reply.type('application/json').header('cache-control', 'no-cache').send(document)
  })
}
