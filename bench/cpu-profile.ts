import { readFileSync } from 'node:fs'

/** CPU time in µs by group and by function. */
export interface SelfTimes {
  readonly totalMicros: number
  readonly groups: ReadonlyMap<string, number>
  readonly functions: ReadonlyMap<string, number>
}

/** A .cpuprofile file of V8. Times are µs of the monotonic clock. */
interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  readonly startTime: number
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

interface ProfileNode {
  readonly id: number
  readonly callFrame: {
    readonly functionName: string
    readonly url: string
    readonly lineNumber: number
  }
}

/** Sums the self times of a profile between two points of time (µs of the monotonic clock), without idle time. */
export function selfTimes(file: string, fromMicros: number, toMicros: number): SelfTimes {
  const profile = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const groups = new Map<string, number>()
  const functions = new Map<string, number>()
  let totalMicros = 0
  let now = profile.startTime
  for (const [index, delta] of profile.timeDeltas.entries()) {
    now += delta
    const node = nodes.get(profile.samples[index] ?? -1)
    if (node === undefined || now < fromMicros || now > toMicros) continue
    const { callFrame } = node
    if (callFrame.functionName === '(idle)') continue
    const group = groupOf(callFrame)
    const name = `${callFrame.functionName || '(anonymous)'} · ${locationOf(callFrame)}`
    totalMicros += delta
    groups.set(group, (groups.get(group) ?? 0) + delta)
    functions.set(name, (functions.get(name) ?? 0) + delta)
  }
  return { totalMicros, groups: sorted(groups), functions: sorted(functions) }
}

function groupOf({ url, functionName }: ProfileNode['callFrame']): string {
  if (functionName === '(garbage collector)') return 'garbage collection'
  if (url === '') return 'native code (sockets, HTTP parser, crypto)'
  const packageName = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1]
  if (packageName !== undefined) return packageName
  const folder = /\/src\/([^/]+)/.exec(url)?.[1]
  if (folder !== undefined) return `src/${folder}`
  if (/^node:.*http/.test(url)) return 'node http'
  if (/^node:.*(stream|net$|tls)/.test(url)) return 'node net and streams'
  return 'node, other'
}

function locationOf({ url, lineNumber }: ProfileNode['callFrame']): string {
  if (url === '') return 'native'
  return `${url.replace(/.*\/node_modules\//, '').replace(/.*\/src\//, 'src/')}:${lineNumber + 1}`
}

function sorted(times: ReadonlyMap<string, number>): Map<string, number> {
  return new Map([...times].toSorted(([, one], [, other]) => other - one))
}
