/** The page's client: it knows the session, makes every call and keeps every connection. The devtools see all of it. */
import { createClient } from '/client.js'
import '../../client/dist/devtools.js'

export { ApiError, SocketError } from '/client.js'

export const client = createClient({ debug: true })
