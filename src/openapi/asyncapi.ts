import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'

/** Made from docs/asyncapi.yaml by `npm run build:client`. */
const DOCUMENT = new URL('asyncapi.json', import.meta.url)

/** `GET /asyncapi.json`: the three kinds of socket and their messages. The file is read at the first request. */
export async function asyncApiRoute(
  fastify: FastifyInstance,
  { publicUrl }: { readonly publicUrl: string },
): Promise<void> {
  let document: string | undefined
  fastify.get('/asyncapi.json', async (_request, reply) => {
    document ??= documentOf(publicUrl)
    return reply.type('application/json').header('cache-control', 'no-cache').send(document)
  })
}

function documentOf(publicUrl: string): string {
  const { host, protocol } = new URL(publicUrl)
  const document = JSON.parse(readFileSync(DOCUMENT, 'utf8')) as { readonly servers: { readonly bff: object } }
  const bff = { ...document.servers.bff, host, protocol: protocol === 'https:' ? 'wss' : 'ws' }
  return JSON.stringify({ ...document, servers: { bff } })
}
