import { frameOf } from './frame-of.ts'
import type { FeedRequest } from './parse-request.ts'

/** The `msg_type` of upstream's answers, where it is not the name of the operation. */
const MESSAGE_TYPES: ReadonlyMap<string, string> = new Map([
  ['ticks', 'tick'],
  ['ticks_history', 'history'],
  ['other', 'error'],
])

/** A frame that answers a request beyond a limit of this server (docs/reference.md, Shared market data). */
export function rateLimitError(request: Pick<FeedRequest, 'operation' | 'prefix'>): Buffer {
  return errorAnswer(request, 'RateLimit', `You have reached the rate limit for ${request.operation}.`)
}

/** A frame that answers a subscription which the browser has already. */
export function alreadySubscribed(request: FeedRequest, symbol: string): Buffer {
  return errorAnswer(request, 'AlreadySubscribed', `You are already subscribed to ${symbol}`)
}

/** A frame with an answer of this server's. @param value the value of the member that has the name of the operation */
export function localAnswer({ operation, prefix }: FeedRequest, value: unknown): Buffer {
  return frameOf(prefix, Buffer.from(`"${operation}":${JSON.stringify(value)},"msg_type":"${operation}"}`))
}

function errorAnswer(request: Pick<FeedRequest, 'operation' | 'prefix'>, code: string, message: string): Buffer {
  const { operation, prefix } = request
  const type = MESSAGE_TYPES.get(operation) ?? operation
  return frameOf(prefix, Buffer.from(`"error":${JSON.stringify({ code, message })},"msg_type":"${type}"}`))
}
