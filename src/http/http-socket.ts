import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What Node's HTTP server keeps on a connection: the request it reads, and the response that is being written. */
type HttpSocket = Socket & {
  readonly parser?: { readonly incoming?: IncomingMessage | null } | null
  readonly _httpMessage?: ResponseInProgress | null
}

/** A response that has not been finished, and its request. */
type ResponseInProgress = ServerResponse & { readonly req: IncomingMessage }

/** The response that is being written on a connection, or waited for. */
export function responseInProgress(socket: Socket): ResponseInProgress | undefined {
  // oxlint-disable-next-line no-underscore-dangle -- Node has no other name for it
  return (socket as HttpSocket)._httpMessage ?? undefined
}

/** The request whose head has been read last on a connection. */
export function requestInProgress(socket: Socket): IncomingMessage | undefined {
  return (socket as HttpSocket).parser?.incoming ?? undefined
}
