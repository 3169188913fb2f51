import { test } from 'tap'
import { Observer, type Observed } from './observer.ts'

const observed = (name: string, sentAt: number): Observed => ({
  ...{ name, pids: () => [], readyUrl: () => 'http://127.0.0.1:1/readyz' },
  sentAt: () => sentAt,
})

await test('a call is of the instance that has sent last from its port: earlier connections had the same one', async (t) => {
  const observer = new Observer()
  observer.watch(t, { grantOf: () => 'login', usableTokens: () => 0 }, [observed('old', 1000), observed('new', 2000)])
  const request = { method: 'POST', path: '/transfer', headers: {}, body: '' }
  observer.upstream.call?.(request, { status: 201, body: '', port: 40_000 })
  t.match(observer.history.executed, [{ sentAt: 2000, instance: 1 }])
})
