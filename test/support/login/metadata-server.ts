import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { httpServer } from '../server/http-server.ts'

/** The two places where an issuer may publish its metadata. */
export const OIDC_PATH = '/.well-known/openid-configuration'
export const OAUTH_PATH = '/.well-known/oauth-authorization-server'

/** What an issuer responds with at a place. */
export type MetadataResponse = (request: IncomingMessage, response: ServerResponse) => unknown

/** An issuer that publishes whatever a test wants. */
export interface MetadataServer {
  readonly url: string
  /** The paths that were requested, in order. */
  readonly requests: string[]
  /** By path; 404 anywhere else. */
  responses: Record<string, MetadataResponse>
  /** Complete metadata of this issuer, with other members; an undefined one is left out. */
  readonly metadata: (other?: Record<string, unknown>) => MetadataResponse
}

/** Starts one that ends with the test. */
export async function metadataServer(t: Test): Promise<MetadataServer> {
  const requests: string[] = []
  const url = await httpServer(t, (request, response) => {
    requests.push(request.url ?? '')
    const respond = issuer.responses[request.url ?? '']
    if (respond === undefined) response.writeHead(404).end()
    else respond(request, response)
  })
  const issuer: MetadataServer = {
    url,
    requests,
    responses: {},
    metadata: (other = {}) =>
      document({
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        ...other,
      }),
  }
  return issuer
}

/** A response with this JSON, or this text. */
export function document(content: unknown, status = 200): MetadataResponse {
  return (_request, response) =>
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(typeof content === 'string' ? content : JSON.stringify(content))
}
