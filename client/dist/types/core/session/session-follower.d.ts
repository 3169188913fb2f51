import { type ServerOptions } from '../base/server.ts';
import type { SessionStore } from './session-store.ts';
/**
 * Creates the session part of a client alone, for a page that only shows whether a user is logged in. It sends nothing before the
 * first `subscribe`.
 */
export declare function createSession(options?: ServerOptions): SessionStore;
