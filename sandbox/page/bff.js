/** The page's client: it knows the session, makes every call and keeps every connection. */
import { createClient } from '/client.js'
import { recordedFetch, RecordedSocket } from './traffic.js'

export { ApiError, SocketError } from '/client.js'

export const client = createClient({ fetch: recordedFetch, WebSocket: RecordedSocket })
