import { freePort, isFree } from './listening.ts'

/** The ports of the commands, by the environment variables that choose them. */
const DEFAULTS = { PORT: 3000, OPS_PORT: 9464, PROVIDER_PORT: 4000, UPSTREAM_PORT: 4100 } as const

type PortName = keyof typeof DEFAULTS
type Ports = Readonly<Partial<Record<PortName, number>>>

/** The ports that a command listens on. */
export function portsOf<Name extends PortName>(
  environment: Readonly<Record<string, string | undefined>>,
  names: readonly Name[],
): Readonly<Record<Name, number>> {
  const ports = names.map((name) => [name, Number(environment[name] ?? DEFAULTS[name])])
  return Object.fromEntries(ports) as Record<Name, number>
}

/**
 * @param hostOf the address on which the port will be used
 * @param command what the user has started
 * @param page the port of the page, where nothing may listen yet
 * @throws Error that names all ports which the command cannot have, and the command with others in their place
 */
export async function requireFree(
  ports: Ports,
  hostOf: (name: string) => string,
  command: string,
  page?: number,
): Promise<void> {
  const owners = new Map(page === undefined ? [] : [[page, 'that of your page']])
  const faults: string[] = []
  const settings: string[] = []
  for (const [name, port] of Object.entries(ports)) {
    const owner = owners.get(port) ?? ((await isFree(port, hostOf(name))) ? undefined : 'taken')
    if (owner !== undefined) faults.push(`port ${port} is ${owner}`)
    owners.set(port, `that of ${name}`)
    if (owner !== undefined || port !== DEFAULTS[name as PortName]) {
      settings.push(`${name}=${owner === undefined ? port : await freePort()} `)
    }
  }
  if (faults.length === 0) return
  const advice = faults.length === 1 ? 'it, or choose another' : 'them, or choose others'
  throw new Error(`P${faults.join(', ').slice(1)}. Stop what uses ${advice}: ${settings.join('')}${command}`)
}
