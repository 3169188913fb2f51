import { useMutation } from '@tanstack/react-query'
import { once, type TransferRequest } from 'trading-bff-client'
import { queryClient } from './query.ts'
import { client } from './trading.ts'

/**
 * Sends a transfer at most once for each `mutate`. `isMade` looks for it, or asks the user, when it is unknown whether it was made.
 * Use it in a component with `key={sessionKey(session)}`, which forgets the result with the session.
 */
export function useTransfer(isMade: (order: TransferRequest) => Promise<boolean>) {
  return useMutation({
    mutationFn: (json: TransferRequest) =>
      once((idempotencyKey) => client.api('/payment-agents/v1/transfer', { method: 'POST', json, idempotencyKey }), {
        isMade: () => isMade(json),
      }),
    // Another attempt of a mutation would have another key, so it would be another transfer.
    retry: false,
    // 'online' keeps an order that is clicked offline, and sends it when the network is back.
    networkMode: 'always',
    onSettled: () => queryClient.invalidateQueries({ queryKey: ['user'] }),
  })
}
