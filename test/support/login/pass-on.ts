import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'

/** The response of a provider to a request that was passed on. */
interface PassedResponse {
  readonly status: number
  /** Sends it to the client. @param expiresIn replaces the expires_in of a token response, unless undefined */
  readonly send: (response: ServerResponse, expiresIn: number | undefined) => void
}

/** Sends a request whose body has been read on to a provider. @param headers replace those of the request */
export async function passOn(
  request: IncomingMessage,
  body: Buffer,
  to: { readonly host: string; readonly port: number },
  headers = request.headers,
): Promise<PassedResponse> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const { method, url: path } = request
    httpRequest({ ...to, method, path, headers }, resolve)
      .on('error', reject)
      .end(body)
  })
  const answered = await buffer(answer)
  const { statusCode: status = 502 } = answer
  const { 'content-length': _, 'transfer-encoding': __, ...kept } = answer.headers
  const isToken = status === 200 && new URLSearchParams(body.toString()).has('grant_type')
  return {
    status,
    send: (response, expiresIn) =>
      void response
        .writeHead(status, kept)
        .end(isToken && expiresIn !== undefined ? withLifetime(answered, expiresIn) : answered),
  }
}

function withLifetime(tokens: Buffer, expiresIn: number): string {
  return JSON.stringify({ ...(JSON.parse(tokens.toString()) as object), expires_in: expiresIn })
}
