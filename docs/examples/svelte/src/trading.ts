import { createClient } from 'trading-bff-client'

export const client = createClient()
import.meta.hot?.accept(() => import.meta.hot?.invalidate())
import.meta.hot?.dispose(() => client.close())
