import { test } from 'tap'
import { controlsWorld } from '../support/controls/controls-world.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { ACCOUNTS } from '../support/user.ts'

const SETTINGS = { UPSTREAM_HEADERS_SECONDS: '1', UPSTREAM_BODY_SECONDS: '1' }

/** Blocks this thread, with the server and its upstream. What has been written has arrived. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

for (const part of ['head', 'end'] as const) {
  await test(`the ${part} of an answer to a GET that arrives while the process stands still for longer than its time is read`, async (t) => {
    const world = await controlsWorld(t, { instances: 1, settings: SETTINGS })
    const { server, upstream } = world
    const user = await world.user('CR1')
    upstream.onRest = (_request, response) => {
      if (part === 'end') response.writeHead(200, { 'content-length': '2' }).flushHeaders()
      setTimeout(() => {
        if (part === 'head') answerJson(response, 200, {})
        else response.end('{}')
        block(5000)
      }, 100)
    }
    t.equal((await user.call('GET', ACCOUNTS, { at: server })).status, 200)
  })
}
