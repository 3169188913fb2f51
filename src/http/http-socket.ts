import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Internals of Node's HTTP server on a connection: the request it reads, and the response it writes. */
type HttpSocket = Socket & {
  readonly parser?: { readonly incoming?: IncomingMessage | null } | null
  readonly _httpMessage?: ResponseInProgress | null
}

/** An unfinished response, and its request. */
type ResponseInProgress = ServerResponse & { readonly req: IncomingMessage }

/** The unfinished response of a connection, whether or not writing has begun. */
export function responseInProgress(socket: Socket): ResponseInProgress | undefined {
  // oxlint-disable-next-line no-underscore-dangle -- Node offers no public property
  return (socket as HttpSocket)._httpMessage ?? undefined
}

/** The request whose headers were read last on a connection. */
export function requestInProgress(socket: Socket): IncomingMessage | undefined {
  return (socket as HttpSocket).parser?.incoming ?? undefined
}
