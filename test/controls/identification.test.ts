import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Identification } from '../../src/controls/identification.ts'
import type { Session } from '../../src/sessions/index.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

const sessionOf = (key: string, subject?: string): Session => ({ key, record: { subject } }) as unknown as Session

/** Whose sessions are, as upstream says when a test has it answer. */
function identification(t: Test) {
  const pass = stoppedClocks(t)
  const asked: [key: string, answer: (subject?: string) => Promise<void>][] = []
  const known = new Identification((session) => {
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    asked.push([session.key, async (subject) => (resolve(subject), void (await turn()))])
    return promise
  })
  const answer = async (subject?: string): Promise<void> => asked.shift()?.[1](subject)
  return { pass, asked, known, answer }
}

await test('a session that knows its subject is that of its subject, and nobody is asked', (t) => {
  const { known, asked } = identification(t)
  t.strictSame(known.of(sessionOf('a', 'ada')), { subject: 'ada' })
  t.strictSame(asked, [])
  t.end()
})

await test('upstream is asked once for all who wait for the same session, and what it says is remembered', async (t) => {
  const { known, asked, answer, pass } = identification(t)
  const session = sessionOf('a')
  t.equal(known.of(session), undefined)
  const waiting = known.ask(session)
  t.equal(known.ask(sessionOf('a')), waiting)
  void known.ask(sessionOf('b'))
  t.strictSame(
    asked.map(([key]) => key),
    ['a', 'b'],
  )
  await answer('ada')
  await waiting
  t.strictSame(known.of(session), { subject: 'ada' })
  t.equal(known.of(sessionOf('b')), undefined, 'each has its own')
  pass(86_400_000)
  t.strictSame(known.of(session), { subject: 'ada' })
})

await test('a failure counts for five seconds, and then upstream may be asked again', async (t) => {
  const { known, asked, answer, pass } = identification(t)
  const session = sessionOf('a')
  void known.ask(session)
  await answer()
  t.equal(known.of(session), 'failed')
  pass(5000)
  t.equal(known.of(session), 'failed')
  pass(1)
  t.equal(known.of(session), undefined)
  void known.ask(session)
  t.equal(asked.length, 1)
  await answer('ada')
  t.strictSame(known.of(session), { subject: 'ada' })
  pass(5001)
  t.strictSame(known.of(session), { subject: 'ada' }, 'the failure is forgotten')
})

await test('ten thousand sessions are remembered, of which the one that was longest not asked for goes first', async (t) => {
  const { known, answer } = identification(t)
  for (let count = 0; count <= 10_000; count++) {
    void known.ask(sessionOf(`${count}`))
    await answer('ada')
    if (count === 5000) known.of(sessionOf('0'))
  }
  t.strictSame(known.of(sessionOf('0')), { subject: 'ada' })
  t.equal(known.of(sessionOf('1')), undefined)
  t.strictSame(known.of(sessionOf('2')), { subject: 'ada' })
})
