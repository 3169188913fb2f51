/** Loaded into a server process with `node --import`: writes to stderr which package each module that is loaded belongs to. */
import { registerHooks } from 'node:module'

const seen = new Set<string>()
registerHooks({
  load(url, context, next) {
    const name = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*\/node_modules\/)/.exec(url)?.[1]
    if (name !== undefined && !seen.has(name)) process.stderr.write(`loads ${name}\n`)
    seen.add(name ?? '')
    return next(url, context)
  },
})
