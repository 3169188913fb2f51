import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Entry } from '../contender.ts'
import { logInMany } from '../login.ts'
import { Program } from '../program.ts'
import { CLIENT_ID, listening } from '../world.ts'

const DIR = fileURLToPath(new URL('.', import.meta.url))
const run = promisify(execFile)

/** A contender that is a program in this folder on npm packages, which are installed on first use. */
export const npmStack = (name: string, file: string, sessions: number): Entry => ({
  name,
  redirectUri: (port) => `http://127.0.0.1:${port}/auth/callback`,
  async start({ provider, upstream, redis }, port) {
    await install()
    const base = `http://127.0.0.1:${port}`
    const program = new Program(name, process.execPath, [join(DIR, file)], {
      env: {
        NODE_ENV: 'production',
        PORT: String(port),
        PUBLIC_URL: base,
        AUTH_URL: provider.url,
        API_URL: upstream.url,
        REDIS_URL: redis.url,
        CLIENT_ID,
      },
      on: 'measured',
    })
    await listening(program, port)
    return { program, cookies: await logInMany({ url: `${base}/auth/login` }, sessions) }
  },
})

/** @throws Error if npm fails */
async function install(): Promise<void> {
  if (existsSync(join(DIR, 'node_modules'))) return
  try {
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: DIR })
  } catch (cause) {
    throw new Error('its npm packages cannot be installed; run: cd bench/peers && npm ci', { cause })
  }
}
