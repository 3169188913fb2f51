import type { History, Told } from '../history.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** A page knows what its purchases on sockets have become. */
export const fatesAreTrue: ProductPromise = {
  name: 'fates-are-true',
  sentence:
    'What the browser package says of a purchase on a socket is true, also when the answer was lost: that it was made, with the id of its contract to the last digit, or that it was not.',
  isTimed: false,
  check(history) {
    return {
      judged: history.told.map(({ at }) => at),
      violations: history.told.flatMap((told) => against(history, told)),
    }
  },
}

function against({ bought }: History, { user, at, purchase, is, contractId }: Told): Violation[] {
  const contracts = bought.filter((each) => each.purchase === purchase)
  const ids = contracts.map((each) => each.contractId)
  if (is === 'made' && !ids.includes(contractId ?? ''))
    return [
      { at, seen: `${user} was told that ${purchase} has bought ${contractId}, and it was ${ids.join() || 'none'}` },
    ]
  if (is === 'not made' && ids.length > 0)
    return [{ at, seen: `${user} was told that ${purchase} was not made, and it has bought ${ids.join()}` }]
  return []
}
