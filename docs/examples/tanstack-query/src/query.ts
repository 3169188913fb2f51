import { QueryClient, useQuery, type UseQueryResult } from '@tanstack/react-query'
import { sessionKey, type ApiPath, type ResponseBody } from 'trading-bff-client'
import { useSession } from 'trading-bff-client/react'
import { client } from './trading.ts'

// The package repeats what may be repeated.
export const queryClient = new QueryClient({ defaultOptions: { queries: { retry: false } } })

/** Loads JSON of the user. Nothing is loaded or shown while no user is logged in. */
export function useApiQuery<P extends ApiPath<'GET'>>(path: P): UseQueryResult<ResponseBody<'GET', P>> {
  const session = sessionKey(useSession(client))
  return useQuery({
    queryKey: ['user', session, path],
    enabled: session !== undefined,
    queryFn: async ({ signal }) => (await client.api(path, { signal })).json(),
  })
}

/** Removes what other sessions have left, calls that are under way included. Call it once, in the browser. */
export function forgetOtherSessions(): void {
  let current: string | undefined
  client.session.subscribe(() => {
    const session = sessionKey(client.session.get())
    if (session === current) return
    current = session
    queryClient.removeQueries({ queryKey: ['user'], predicate: ({ queryKey }) => queryKey[1] !== session })
    queryClient.getMutationCache().clear()
  })
}
