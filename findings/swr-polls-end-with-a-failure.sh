#!/bin/sh
# SWR 2.5.1 (useSWR): a guess says that `refreshInterval` asks again at every interval, whether the last answer was good or not, and that
# `shouldRetryOnError: false` only leaves out the retries in between. Yet no poll is made while the last answer was a failure; only a
# retry can end that state. So without retries, or once `errorRetryCount` of them have failed, one bad answer ends the polls for good:
# a page whose interval seems to make retries needless shows the positions of that moment until somebody looks away and back.
# TanStack Query 5 with refetchInterval and retry: false goes on.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"type":"module"}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts swr@2.5.1 @tanstack/query-core@5.108.4 react@19.3.1 react-test-renderer@19.3.1
cat >poll.mjs <<'JS'
import { createElement } from 'react'
import { create } from 'react-test-renderer'
const page = { addEventListener() {}, removeEventListener() {} }
Object.assign(globalThis, page, { window: globalThis, document: { ...page, visibilityState: 'visible' } })
const { default: useSWR } = await import('swr')
const { QueryClient, QueryObserver } = await import('@tanstack/query-core')

const failingOnce = (failure) => {
  let calls = 0
  return { count: () => calls, call: async () => (++calls === failure ? Promise.reject(new Error(`answer ${calls} is a 503`)) : calls) }
}
const polls = async (name, start) => {
  const bad = failingOnce(3)
  const good = failingOnce(0)
  start(`${name} bad`, bad.call)
  start(`${name} good`, good.call)
  for (let tries = 0; good.count() < 10; tries++) {
    if (tries === 1000) throw new Error(`${name} does not poll`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  console.log(`${name}: ${bad.count() === 3 ? 'no poll' : 'polls'} after a failure`)
}
const swr = (options) => (key, call) => {
  const Page = () => String(useSWR(key, call, { refreshInterval: 50, dedupingInterval: 0, ...options }).data)
  create(createElement(Page))
}
await polls('SWR without retries', swr({ shouldRetryOnError: false }))
await polls('SWR whose retries are used up', swr({ errorRetryCount: 0 }))
await polls('TanStack Query without retries', (key, queryFn) => {
  new QueryObserver(new QueryClient(), { queryKey: [key], queryFn, refetchInterval: 50, retry: false }).subscribe(() => {})
})
process.exit()
JS
seen=$(node poll.mjs 2>log) || { cat log; exit 1; }
echo "$seen"
[ "$seen" = 'SWR without retries: no poll after a failure
SWR whose retries are used up: no poll after a failure
TanStack Query without retries: polls after a failure' ]
