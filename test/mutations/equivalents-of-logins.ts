import { inFile, type Equivalent } from './equivalent.ts'

export const OF_LOGINS: readonly Equivalent[] = [
  ...inFile('src/login/finish-login.ts', [
    ['...(subject !== undefined && { subject }),', 'true', 'A record leaves out a subject that is undefined.'],
    [
      "await Promise.allSettled([sessions.end(session, 'replaced', by), enlisted && subjects?.withdraw(enlisted)])",
      'subjects.withdraw',
      'Only an index of subjects gives an entry to withdraw.',
    ],
  ]),
  ...inFile('src/login/callback-route.ts', [
    [
      "for (const { session, cookieValue = '' } of earlier) {",
      '"Stryker was here!"',
      'No cookie with that value has a valid signature either.',
    ],
  ]),
  ...inFile('src/login/session-routes.ts', [
    [
      'if (subjects === undefined || session === undefined || subject === undefined) return false',
      'false',
      'Where there is no session, there is no subject. The other two conditions are noticed.',
    ],
  ]),
]
