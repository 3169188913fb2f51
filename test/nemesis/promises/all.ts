import type { ProductPromise } from '../promise.ts'
import { atMostOnce } from './at-most-once.ts'
import { attributionArrives } from './attribution-arrives.ts'
import { budgetIsKept } from './budget-is-kept.ts'
import { endedIsRevoked } from './ended-is-revoked.ts'
import { endedMeansEnded } from './ended-means-ended.ts'
import { onceMeansOnce } from './once-means-once.ts'
import { othersAreServed } from './others-are-served.ts'
import { pagesSendInTime } from './pages-send-in-time.ts'
import { pausedMeansPaused } from './paused-means-paused.ts'
import { readyMeansServed } from './ready-means-served.ts'
import { silenceIsTold } from './silence-is-told.ts'
import { ticksAreTrue } from './ticks-are-true.ts'
import { tokensAreRenewedSeldom } from './tokens-are-renewed-seldom.ts'
import { fatesAreTrue } from './fates-are-true.ts'
import { givenUpMeansGivenUp } from './given-up-means-given-up.ts'
import { nothingIsLeft } from './nothing-is-left.ts'
import { recordsAreTrue } from './records-are-true.ts'
import { statesAreTrue } from './states-are-true.ts'
import { trueOutcomes } from './true-outcomes.ts'

/** Every promise that a run checks. */
export const ALL_PROMISES: readonly ProductPromise[] = [
  atMostOnce,
  endedMeansEnded,
  trueOutcomes,
  othersAreServed,
  pausedMeansPaused,
  budgetIsKept,
  ticksAreTrue,
  attributionArrives,
  onceMeansOnce,
  tokensAreRenewedSeldom,
  endedIsRevoked,
  recordsAreTrue,
  statesAreTrue,
  nothingIsLeft,
  silenceIsTold,
  readyMeansServed,
  fatesAreTrue,
  pagesSendInTime,
  givenUpMeansGivenUp,
]
