import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import type { Endpoint } from '../proxy/endpoint.ts'
import { openApiDocument, type OpenApiFacts } from './document.ts'

/** Made from docs/asyncapi.yaml by `npm run build:client`. */
const ASYNCAPI = new URL('asyncapi.json', import.meta.url)

/**
 * `GET /openapi.json`, and `GET /asyncapi.json`: the three kinds of socket and their messages. Each document is made at the
 * first request, so that no start waits for it.
 */
export async function documentRoutes(
  fastify: FastifyInstance,
  { endpoints, facts }: { readonly endpoints: readonly Endpoint[]; readonly facts: OpenApiFacts },
): Promise<void> {
  const documents: Readonly<Record<string, () => object>> = {
    '/openapi.json': () => openApiDocument(endpoints, facts),
    '/asyncapi.json': () => asyncApiDocument(facts.publicUrl),
  }
  for (const [path, make] of Object.entries(documents)) {
    let document: string | undefined
    fastify.get(path, async (_request, reply) => {
      document ??= JSON.stringify(make())
      return reply.type('application/json').header('cache-control', 'no-cache').send(document)
    })
  }
}

function asyncApiDocument(publicUrl: string): object {
  const { host, protocol } = new URL(publicUrl)
  const document = JSON.parse(readFileSync(ASYNCAPI, 'utf8')) as { readonly servers: { readonly bff: object } }
  const bff = { ...document.servers.bff, host, protocol: protocol === 'https:' ? 'wss' : 'ws' }
  return { ...document, servers: { bff } }
}
