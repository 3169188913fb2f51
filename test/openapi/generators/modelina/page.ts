import { same } from '../shared/calls.ts'
import type { OhlcAnswer } from './OhlcAnswer.ts'
import type { PastCandlesAnswer } from './PastCandlesAnswer.ts'
import type { PastPricesAnswer } from './PastPricesAnswer.ts'
import type { Refusal } from './Refusal.ts'
import type { TicksAnswer } from './TicksAnswer.ts'
import type { TicksHistoryRequest } from './TicksHistoryRequest.ts'

export const request: TicksHistoryRequest = { ticks_history: 'R_100', end: 'latest', style: 'candles', granularity: 60 }

/** Each kind of answer has a member of its own. */
export function newest(answer: PastPricesAnswer | PastCandlesAnswer | TicksAnswer | OhlcAnswer | Refusal): unknown {
  if ('error' in answer) same<typeof answer, Refusal>(true)
  else if ('history' in answer) same<typeof answer, PastPricesAnswer>(true)
  else if ('candles' in answer) same<typeof answer, PastCandlesAnswer>(true)
  else if ('tick' in answer) same<typeof answer, TicksAnswer>(true)
  else same<typeof answer, OhlcAnswer>(true)
  return answer
}
