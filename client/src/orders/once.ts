import type { KeyChoices } from '../core/api/key-choice.ts'
import type { ApiError, once as coreOnce, OnceOptions, SocketError } from '../core/client.ts'
import { fate } from './fate.ts'
import { RememberedKey } from './remembered-key.ts'

type Once = typeof coreOnce

/** The problems after which the server never sends the call of a key. */
const FINAL = /^(outcome_unknown|answer_not_kept)$/

/**
 * `once` where the package has to find out what became of the order, or to remember it.
 * @param once that of the page's core, and its keys: this module may have a copy of its own of anything that it imports
 */
export async function orderOnce<Answer>(
  once: Once,
  keyChoices: KeyChoices,
  order: (idempotencyKey: string) => Promise<Answer>,
  { isMade = isFound, remember }: OnceOptions,
): Promise<Answer | undefined> {
  try {
    return await (remember ? onceRemembered(once, keyChoices, order, isMade, remember) : once(order, { isMade }))
  } catch (error) {
    // The refusal of the trading service has arrived after all.
    const { cause } = error as Error
    throw (cause as Partial<SocketError> | undefined)?.reply ? cause : error
  }
}

/** Whether the account shows the contract of a `buy`. What became of a call with a key the server says, when it gets the key again. */
async function isFound(error: ApiError | SocketError): Promise<boolean> {
  return 'order' in error && error.order !== undefined && (await fate(error)).is === 'made'
}

async function onceRemembered<Answer>(
  once: Once,
  keyChoices: KeyChoices,
  order: (idempotencyKey: string) => Promise<Answer>,
  isMade: NonNullable<OnceOptions['isMade']>,
  name: string,
): Promise<Answer | undefined> {
  const remembered = new RememberedKey(name)
  const orderRemembered = async (fresh: string): Promise<Answer> => {
    keyChoices.set(fresh, (call) => remembered.choose(call, fresh))
    try {
      return await order(fresh)
    } finally {
      keyChoices.delete(fresh)
    }
  }
  try {
    const answer = await once(orderRemembered, {
      isMade(error) {
        // Only the page can find out what another session has done.
        if (remembered.isOfOtherSession(error) && isMade === isFound) throw error
        return isMade(error)
      },
    })
    await remembered.forget()
    return answer
  } catch (error) {
    const { outcome, problem } = error as ApiError
    if (outcome !== 'unknown') await remembered.forget()
    else if (FINAL.test(problem?.code ?? '')) await remembered.renew()
    throw error
  }
}
