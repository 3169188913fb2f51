import type { Message, PublicSocket } from '../../../client/dist/client.js'
import { until } from '../time/until.ts'
import { untyped } from './untyped.ts'

/** A stream of a page, what it has received, and the codes of its errors. */
export interface Followed {
  readonly messages: Message[]
  readonly errors: string[]
  readonly stop: () => void
}

function follow(socket: PublicSocket, message: object): Followed {
  const [messages, errors]: [Message[], string[]] = [[], []]
  const stop = untyped(socket).subscribe(
    message,
    (received) => void messages.push(received),
    ({ code }) => void errors.push(code),
  )
  return { messages, errors, stop }
}

/** The price of a symbol. */
export const price = (socket: PublicSocket, symbol = 'R_1'): Followed => follow(socket, { ticks: symbol })
/** So many prices of a symbol, and those that follow. */
export const chart = (socket: PublicSocket, count: number, symbol = 'R_1'): Followed =>
  follow(socket, { ticks_history: symbol, style: 'ticks', end: 'latest', count })
/** Resolves once each stream has received a message with this name in it. */
export const has = (name: string, ...followed: readonly Followed[]): Promise<void> =>
  until(() => followed.every(({ messages }) => messages.some((message) => name in message)), name)
