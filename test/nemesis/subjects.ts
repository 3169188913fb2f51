import type { History } from './history.ts'

/** Whose each session is, by what upstream has answered when it was asked for that. */
export function subjectsOf({ executed }: History): Map<string, string> {
  return new Map(
    executed.flatMap(({ session, response }) => {
      const subject = /"user_id":"([\w-]+)"/.exec(response)?.[1]
      return session === undefined || subject === undefined ? [] : [[session, subject] as const]
    }),
  )
}
