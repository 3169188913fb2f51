import { ID } from '../http/known-paths.ts'
import { content, parameter, ref, type Json } from '../proxy/document-parts.ts'
import { get, operation, problems, withSession } from './own-operation.ts'

/** The routes by which a page asks about the other sessions of its user (docs/reference.md, The user's own sessions). */
export const OWN_SESSION_PATHS: Readonly<Record<string, Json>> = {
  '/auth/sessions': get(
    'login',
    'listSessions',
    "The user's sessions in all browsers",
    'The newest 100, a few seconds old. At most 10 times a minute for a user. Asking does not prolong an idle session.',
    {
      ...withSession,
      responses: {
        '200': { description: 'The newest first', content: content('application/json', ref('OwnSessions')) },
        ...problems('login_required', 'subject_unknown', 'rate_limited', 'session_store_unavailable'),
      },
    },
  ),
  '/auth/sessions/{tag}': {
    delete: operation(
      'login',
      'endSession',
      'Log out in another browser',
      'Ends one of the other sessions of the user on all instances, and closes its sockets.',
      {
        security: [{ session: [], csrf: [] }],
        parameters: [parameter('path', 'tag', { type: 'string', pattern: ID.source }, 'As in the list')],
        responses: {
          '204': { description: 'The session has ended' },
          ...problems(
            'login_required',
            'csrf_rejected',
            'not_found',
            'subject_unknown',
            'current_session',
            'rate_limited',
            'session_store_unavailable',
          ),
        },
      },
    ),
  },
}
