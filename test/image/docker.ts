import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** The repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const run = promisify(execFile)
/** Names of tests' images and projects begin so. */
export const NAME = 'bff-image-test'

/** Where commands run, and what they are told beside what this process is. */
interface Place {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Runs a program to its end. @returns what it printed. @throws Error with what it said when it fails */
export async function execute(
  program: string,
  options: readonly string[],
  { cwd = ROOT, env = {} }: Place = {},
): Promise<string> {
  const { stdout } = await run(program, options, {
    cwd,
    maxBuffer: 64 * 1024 * 1024,
    // What older ones do only when told to.
    env: { ...process.env, DOCKER_BUILDKIT: '1', ...env },
  })
  return stdout
}

/** The same with docker. */
export const docker = (...options: string[]): Promise<string> => execute('docker', options)

/** A container from its start on. */
export class Container {
  readonly id: string

  private constructor(id: string) {
    this.id = id
  }

  /** Starts one as strictly as one can. @param command in place of the image's own */
  static async start(
    image: string,
    settings: Readonly<Record<string, string>>,
    command: readonly string[] = [],
  ): Promise<Container> {
    const environment = Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`])
    const strict = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges']
    return new Container(
      (await docker('run', '--detach', ...strict, ...environment, image, ...command)).trim(),
    )
  }

  /** A value of what docker knows of it, in Go's template language. */
  async inspect(format: string): Promise<string> {
    return (await docker('inspect', '--format', format, this.id)).trim()
  }

  /** Evaluates a module in it. @returns what it printed */
  evaluate(code: string): Promise<string> {
    return docker('exec', this.id, 'node', '--input-type=module', '--eval', code)
  }

  /** The status of an address of its own, 0 when nobody answers. */
  async ask(address: string): Promise<number> {
    const code = `const { status } = await fetch('${address}').catch(() => ({ status: 0 })); process.stdout.write(String(status))`
    return Number(await this.evaluate(code))
  }

  /** Resolves with the exit code. */
  async ended(): Promise<number> {
    return Number(await docker('wait', this.id))
  }

  remove(): Promise<string> {
    return docker('rm', '--force', this.id)
  }
}
