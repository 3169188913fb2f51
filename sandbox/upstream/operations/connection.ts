import { Type } from 'typebox'
import { nowSeconds } from '../accounts.ts'
import { one, operation, type Operation } from '../operation.ts'
import { STREAM_TYPES } from '../subscriptions.ts'

const streamType = Type.Enum([...STREAM_TYPES])

/** Operations on the connection itself. */
export const connectionOperations: readonly Operation[] = [
  operation({
    name: 'ping',
    properties: { ping: one },
    run: (request, connection) => connection.respond(request, 'ping', { ping: 'pong' }),
  }),
  operation({
    name: 'time',
    properties: { time: one },
    run: (request, connection) => connection.respond(request, 'time', { time: nowSeconds() }),
  }),
  operation({
    name: 'forget',
    properties: { forget: Type.String() },
    run(request, connection) {
      const forgotten = connection.subscriptions.forget(request.forget)
      connection.respond(request, 'forget', { forget: forgotten ? 1 : 0 })
    },
  }),
  operation({
    name: 'forget_all',
    properties: { forget_all: Type.Union([streamType, Type.Array(streamType)]) },
    run(request, connection) {
      const forgotten = connection.subscriptions.forgetAll([request.forget_all].flat())
      connection.respond(request, 'forget_all', { forget_all: forgotten })
    },
  }),
]
