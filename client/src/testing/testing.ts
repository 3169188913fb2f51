import { refuseProduction } from '../core/base/production.ts'

export { createFakeClient, type FakeClient, type FakeOptions } from './fake-client.ts'
export type { FakeServer } from './fake-server.ts'
export type { FakeSession } from './fake-session.ts'
export { problem, type FakeAnswer, type FakeCall } from './fake-api.ts'
export type { FakeBody, FakeMessage, FakeReply, StreamMembers } from './fake-trading.ts'
export type { NetworkState } from './fake-network.ts'

refuseProduction('testing', 'tests')
