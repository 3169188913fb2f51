import type { Call, Executed, History } from '../history.ts'
import type { ProductPromise, Violation } from '../promise.ts'
import { purchaseIn, purchasesAt } from '../purchases.ts'

/** Whoever is told one of these is told that nothing was executed. */
const NOT_EXECUTED: ReadonlySet<string> = new Set([
  'upstream_unreachable',
  'upstream_budget',
  'upstream_limit',
  'credential_renewed',
  'orders_paused',
  'session_store_unavailable',
  'login_required',
  'session_expired',
])

/** Who is told an outcome is told the true one. */
export const trueOutcomes: ProductPromise = {
  name: 'true-outcomes',
  sentence:
    'A page that is told that its order was executed, or that it was not, is told the truth, and an order whose outcome is unknown is not sent any more.',
  isTimed: false,
  check(history) {
    const orders = history.calls.filter(({ kind }) => kind === 'order')
    const attempts = Map.groupBy(orders, ({ session, key }) => `${session} ${key}`)
    const all = [...attempts.values()]
    const answers = answersOf(history)
    return {
      judged: orders.flatMap(({ until }) => until ?? []).concat(answers.map(({ at }) => at)),
      violations: all
        .flatMap((calls) =>
          calls
            .flatMap((call) => falselyDone(history, call))
            .concat(falselyNotDone(history, calls), sentLater(history, calls)),
        )
        .concat(falselyAnswered(history, answers)),
    }
  },
}

function falselyDone(history: History, { result, user, session, key, body, at, until = at }: Call): Violation[] {
  if (result !== 'ok' || executionsOf(history, { session, key }).some(({ response }) => response === body)) return []
  const seen = `${user} was told that order ${key} was executed, and upstream has no such response: ${body}`
  return [{ at: until, seen }]
}

/** An attempt that was told that nothing was executed is believed, if another one at the same instance can have been. */
function falselyNotDone(history: History, calls: readonly Call[]): Violation[] {
  return calls
    .filter(({ result }) => NOT_EXECUTED.has(result))
    .flatMap((call) => {
      const others = calls.filter((each) => each !== call && each.instance === call.instance)
      const executed = executionsOf(history, call).find(
        ({ status, instance, sentAt }) =>
          status < 400 &&
          instance === call.instance &&
          isDuring(call, sentAt) &&
          !others.some((each) => isDuring(each, sentAt)),
      )
      if (executed === undefined) return []
      const seen = `${call.user} was told that order ${call.key} was not executed (${call.result}), but it was`
      return [{ at: executed.at, seen }]
    })
}

/** A page that is told that the outcome is unknown looks for it elsewhere, so nothing may follow. */
function sentLater(history: History, calls: readonly Call[]): Violation[] {
  const untils = calls.flatMap(({ result, until }) => (result === 'outcome_unknown' ? (until ?? []) : []))
  const [call] = calls
  if (untils.length === 0 || call === undefined) return []
  return executionsOf(history, call)
    .filter(({ sentAt }) => sentAt > Math.min(...untils))
    .map(({ at }) => ({
      at,
      seen: `order ${call.key} was sent after ${call.user} was told that its outcome is unknown`,
    }))
}

/** A call goes on when its page has given up. */
function isDuring({ at, until = Infinity, result }: Call, moment: number): boolean {
  return at <= moment && (moment <= until || result === 'no_answer')
}

const executionsOf = ({ executed }: History, { session, key }: Pick<Call, 'session' | 'key'>): Executed[] =>
  executed.filter((each) => each.session === session && each.key === key)

/** What pages were told about their purchases on sockets. */
interface Answer {
  readonly at: number
  readonly user: string
  readonly id: string
  /** Whether upstream has answered; if not, the server says that nothing was sent. */
  readonly isOfUpstream: boolean
}

function answersOf({ sockets }: History): Answer[] {
  return sockets.flatMap(({ user, received }) =>
    received.flatMap(({ at, text }) => {
      const id = purchaseIn(text)
      return id === undefined ? [] : [{ at, user, id, isOfUpstream: !text.includes('"OrdersPaused"') }]
    }),
  )
}

function falselyAnswered(history: History, answers: readonly Answer[]): Violation[] {
  const reached = new Set(purchasesAt(history).map(({ id }) => id))
  return answers
    .filter(({ id, isOfUpstream }) => isOfUpstream !== reached.has(id))
    .map(({ at, user, id, isOfUpstream }) => ({
      at,
      seen: `${user} was told that purchase ${id} was ${isOfUpstream ? 'answered by upstream, which has never had it' : 'not sent, and upstream has it'}`,
    }))
}
