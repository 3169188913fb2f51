export { useApi, type ApiData } from './use-api.ts'
export { useSession } from './use-session.ts'
export { useSeries, useSocket, useSubscription, type OpenSocket, type Subscription } from './use-socket.ts'
