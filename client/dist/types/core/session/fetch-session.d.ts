import { type Server } from '../base/server.ts';
import { type SessionBody } from './session-state.ts';
/**
 * Asks the server for the session.
 * @returns undefined if the response is not valid, so that the session may or may not be alive
 * @throws the error of `fetch`
 */
export declare function fetchSession(server: Server): Promise<SessionBody | undefined>;
