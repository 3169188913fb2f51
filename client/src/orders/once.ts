import type { makeOnce, OnceOptions } from '../core/api/order.ts'
import type { ApiError, SocketError } from '../core/base/errors.ts'
import { fate } from './fate.ts'
import { RememberedKey } from './remembered-key.ts'

/** The problems after which the server never sends the call of a key. */
const FINAL = /^(outcome_unknown|answer_not_kept)$/

type IsMade = NonNullable<OnceOptions['isMade']>

/**
 * `once` where the package has to find out what became of the order, or to remember it.
 * @param make that of the page's core: this module may have a copy of its own of anything that it imports
 */
export async function orderOnce<Answer>(
  make: typeof makeOnce,
  order: (idempotencyKey: string) => Promise<Answer>,
  { isMade = isFound, remember }: OnceOptions,
): Promise<Answer | undefined> {
  try {
    return await (remember ? onceRemembered(make, order, isMade, remember) : make(order, isMade))
  } catch (error) {
    // The buy was refused after all. A refusal to read the account says nothing of the buy.
    const { cause } = error as { cause?: Partial<SocketError> }
    throw isMade === isFound && cause?.reply?.['msg_type'] === 'buy' ? cause : error
  }
}

/** Whether the account shows the contract of a `buy`. What became of a call with a key the server says, when it gets the key again. */
async function isFound(error: ApiError | SocketError): Promise<boolean> {
  return 'order' in error && error.order !== undefined && (await fate(error)).is === 'made'
}

async function onceRemembered<Answer>(
  make: typeof makeOnce,
  order: (idempotencyKey: string) => Promise<Answer>,
  isMade: IsMade,
  name: string,
): Promise<Answer | undefined> {
  const remembered = new RememberedKey(name)
  // Only the page can find out what another session has done.
  const find: IsMade = (error) => {
    if (remembered.isOfOtherSession(error) && isMade === isFound) throw error
    return isMade(error)
  }
  try {
    const answer = await make(order, find, (...call) => remembered.choose(...call))
    await remembered.forget()
    return answer
  } catch (error) {
    const { outcome, problem, cause } = error as ApiError
    if (outcome !== 'unknown') await remembered.forget(true)
    else if (FINAL.test(problem?.code ?? '') || remembered.isOfOtherSession(cause)) await remembered.renew()
    throw error
  }
}
