import type { Answer } from '../../support/user.ts'
import type { Person, RowWorld } from './row-world.ts'

/** Collects what is not as it is promised. */
export type Expect = (holds: boolean, what: string) => void

/** A part of a life. */
export type Part = (world: RowWorld, expect: Expect) => Promise<void>

/** Logs somebody in. */
export async function logIn(world: RowWorld, name: string, path?: string): Promise<Person> {
  const person = world.person(name)
  const login = await person.start(path)
  const arrival = await login.finish()
  if (arrival.url.searchParams.has('auth_error')) throw new Error(`a login ends at ${arrival.url.href}`)
  return person
}

/** A response, to be shown. */
export const told = ({ status, text }: Answer): string => `${status} ${text.slice(0, 120)}`

/** Whether sessions have subjects. */
export const hasSubjects = ({ settings }: RowWorld): boolean => Boolean(settings['IDENTITY_PATH'] ?? settings['OIDC'])
